/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: JSON of tokens to and from the texts of a command.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base, json-c.
 */
#include "api/token_text.h"

#include "api/json_in.h"
#include "api/json_out.h"

int token_text_request(struct buf *out, const struct token_text_wish *wish)
{
    struct json_out json;

    json_out_init(&json, out);
    json_out_open(&json, '{');
    json_out_key(&json, "scope");
    json_out_string(&json, wish->scope);
    if (wish->name != NULL) {
        json_out_key(&json, "name");
        json_out_string(&json, wish->name);
    }
    if (wish->lifetime_s > 0) {
        json_out_key(&json, "expiresInS");
        json_out_number(&json, wish->lifetime_s);
    }
    json_out_close(&json, '}');
    return json_out_failed(&json) ? -1 : 0;
}

/* NULL: there is no such string. */
static const char *member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;

    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : NULL;
}

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

int token_text_made(const char *body, size_t size, struct buf *out, struct buf *about)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, NULL);
    const char *token = object != NULL ? member(object, "token") : NULL;
    const char *expires = NULL;

    if (token == NULL) {
        return -1;
    }
    expires = member(object, "expiresAt");
    (void)buf_printf(out, "%s\n", token);
    (void)buf_printf(about, "%s of scope %s, %s%s; its text is shown this once\n",
                     or_dash(member(object, "id")), or_dash(member(object, "scope")),
                     expires != NULL ? "until " : "without an end", expires != NULL ? expires : "");
    return 0;
}

int token_text_list(const char *body, size_t size, struct buf *out)
{
    static const char form[] = "%-25s %-5s %-24s %-24s %s\n";
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, NULL);
    struct json_object *items = NULL;

    if (object == NULL || !json_object_object_get_ex(object, "items", &items) ||
        !json_object_is_type(items, json_type_array)) {
        return -1;
    }
    (void)buf_printf(out, form, "ID", "SCOPE", "CREATED", "EXPIRES", "NAME");
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        struct json_object *item = json_object_array_get_idx(items, i);

        (void)buf_printf(out, form, or_dash(member(item, "id")), or_dash(member(item, "scope")),
                         or_dash(member(item, "createdAt")), or_dash(member(item, "expiresAt")),
                         or_dash(member(item, "name")));
    }
    return 0;
}

void token_text_problem(const char *body, size_t size, struct buf *out)
{
    CLEANUP_JSON struct json_object *object = json_in_parse(body, size, NULL);
    const char *detail = object != NULL ? member(object, "detail") : NULL;
    const char *remedy = object != NULL ? member(object, "remediation") : NULL;

    (void)buf_append_text(out, detail != NULL ? detail : "the server gave no answer");
    if (remedy != NULL) {
        (void)buf_printf(out, "\n%s", remedy);
    }
}
