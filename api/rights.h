/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights: what a caller of narrow scope may not ask for. Pure; any thread.
 */
#ifndef KERND_API_RIGHTS_H
#define KERND_API_RIGHTS_H

#include "api/api.h"
#include "lib/sandbox/limits.h"
#include "lib/sandbox/options.h"
#include "lib/sandbox/run.h"

/* 0, or -1 FORBIDDEN: the route is not for narrow tokens at all. */
int rights_check_route(const struct api_call *call, struct err *err);

/*
 * 0, or -1 with a pointer when the token's scope does not reach so far: MOUNT_REFUSED for host
 * directories, NETWORK_DENIED for the network (setup has it, too), FORBIDDEN for limits above the
 * server's defaults.
 */
int rights_check_request(const struct api_call *call, const struct run_request *request,
                         struct err *err);
int rights_check_options(const struct api_call *call, const struct options *options,
                         struct err *err);
int rights_check_setup(const struct api_call *call, struct err *err);

#endif
