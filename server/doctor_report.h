/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_report: what the doctor found, for people and for programs. Not thread-safe.
 */
#ifndef KERND_SERVER_DOCTOR_REPORT_H
#define KERND_SERVER_DOCTOR_REPORT_H

#include <stddef.h>
#include <stdio.h>

enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_finding {
    const char *name; /* static: "kernel", "user namespaces" */
    enum doctor_status status;
    char *found; /* one line */
    char *fix;   /* what to do, NULL: nothing */
};

struct doctor_report {
    struct doctor_finding *findings;
    size_t count;
};

void doctor_report_done(struct doctor_report *report);

/* Adds a finding; found is a printf-style line. */
void doctor_report_add(struct doctor_report *report, const char *name, enum doctor_status status,
                       const char *found, ...) __attribute__((format(printf, 4, 5)));

/* What to do about the finding that was added last: a copy is kept; NULL or "": nothing. */
void doctor_report_fix(struct doctor_report *report, const char *fix);

/* The worst status of all. */
enum doctor_status doctor_report_worst(const struct doctor_report *report);

/* A line for each finding, and one for each fix. */
void doctor_report_print(const struct doctor_report *report, FILE *out);

/*
 * {"version","status","checks":[{"name","status","found","fix"}]}; status is "ok", "warn", "fail";
 * fix null where there is nothing to do. 0, or -1 when it could not be written.
 */
int doctor_report_print_json(const struct doctor_report *report, FILE *out);

#endif
