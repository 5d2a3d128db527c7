/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: hand out the description of the API that is built into the binary.
 * Owns: nothing; the build makes the bytes from api/openapi.yaml.
 * Threads: any.
 * May include: lib/base.
 */
#include "api/resource_spec.h"

#include "api/document.h"
#include "api/resource.h"

extern const char asset_openapi_yaml[];
extern const char asset_openapi_yaml_end[];
extern const char asset_openapi_json[];
extern const char asset_openapi_json_end[];

static void reply_text(struct api_call *call, const char *type, const char *text, const char *end)
{
    call->reply.status = 200;
    api_reply_header(&call->reply, "Content-Type", type);
    (void)buf_append(&call->reply.body, text, (size_t)(end - text));
    document_finish(call);
}

void resource_spec_yaml(struct api_call *call)
{
    reply_text(call, "application/yaml", asset_openapi_yaml, asset_openapi_yaml_end);
}

void resource_spec_json(struct api_call *call)
{
    reply_text(call, "application/json", asset_openapi_json, asset_openapi_json_end);
}
