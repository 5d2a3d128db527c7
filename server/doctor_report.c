/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: collect findings; print them.
 * Owns: the texts.
 * Threads: main.
 * May include: json_out.h, lib/base.
 */
#include "server/doctor_report.h"

#include <stdarg.h>
#include <stdlib.h>

#include "api/json_out.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

#define JSON_MAX ((size_t)1 << 20)

static const char *status_text(enum doctor_status status)
{
    switch (status) {
    case DOCTOR_OK:
        return "ok";
    case DOCTOR_WARN:
        return "warn";
    case DOCTOR_FAIL:
        return "fail";
    }
    return "fail";
}

void doctor_report_done(struct doctor_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->findings[i].found);
        free(report->findings[i].fix);
    }
    free(report->findings);
    *report = (struct doctor_report){ .count = 0 };
}

void doctor_report_add(struct doctor_report *report, const char *name, enum doctor_status status,
                       const char *found, ...)
{
    va_list arguments;
    struct doctor_finding *finding;

    report->findings = alloc_resize(report->findings, report->count + 1, sizeof(*report->findings));
    finding = &report->findings[report->count++];
    *finding = (struct doctor_finding){ .name = name, .status = status };
    va_start(arguments, found);
    finding->found = alloc_vprintf(found, arguments);
    va_end(arguments);
}

void doctor_report_fix(struct doctor_report *report, const char *fix)
{
    if (fix != NULL && fix[0] != '\0') {
        report->findings[report->count - 1].fix = alloc_text(fix);
    }
}

enum doctor_status doctor_report_worst(const struct doctor_report *report)
{
    enum doctor_status worst = DOCTOR_OK;

    for (size_t i = 0; i < report->count; i++) {
        worst = report->findings[i].status > worst ? report->findings[i].status : worst;
    }
    return worst;
}

void doctor_report_print(const struct doctor_report *report, FILE *out)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_finding *finding = &report->findings[i];

        (void)fprintf(out, "%-4s  %-16s  %s\n", status_text(finding->status), finding->name,
                      finding->found);
        if (finding->fix != NULL) {
            (void)fprintf(out, "%24sfix: %s\n", "", finding->fix);
        }
    }
}

static void write_finding(struct json_out *json, const struct doctor_finding *finding)
{
    json_out_open(json, '{');
    json_out_key(json, "name");
    json_out_string(json, finding->name);
    json_out_key(json, "status");
    json_out_string(json, status_text(finding->status));
    json_out_key(json, "found");
    json_out_string(json, finding->found);
    json_out_key(json, "fix");
    json_out_string(json, finding->fix);
    json_out_close(json, '}');
}

int doctor_report_print_json(const struct doctor_report *report, FILE *out)
{
    CLEANUP_BUF struct buf text = BUF_INIT(JSON_MAX);
    struct json_out json;

    json_out_init(&json, &text);
    json_out_open(&json, '{');
    json_out_key(&json, "version");
    json_out_string(&json, KERND_VERSION);
    json_out_key(&json, "status");
    json_out_string(&json, status_text(doctor_report_worst(report)));
    json_out_key(&json, "checks");
    json_out_open(&json, '[');
    for (size_t i = 0; i < report->count; i++) {
        write_finding(&json, &report->findings[i]);
    }
    json_out_close(&json, ']');
    json_out_close(&json, '}');
    return !json_out_failed(&json) && fprintf(out, "%s\n", text.data) > 0 ? 0 : -1;
}
