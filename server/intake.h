/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake: takes a request in: head, then body, then on its way to api; or refuses it. All on the
 * event thread, from inside libmicrohttpd's access callback.
 */
#ifndef KERND_SERVER_INTAKE_H
#define KERND_SERVER_INTAKE_H

#include <stddef.h>

struct exchange;

/*
 * Each returns 0 to go on (libmicrohttpd reads more, or the connection is suspended, or a reply is
 * queued) and -1 to have the connection closed.
 */
int intake_head(struct exchange *exchange, const char *method, const char *version);
int intake_data(struct exchange *exchange, const char *data, size_t *size); /* 0 once taken */
int intake_end(struct exchange *exchange);

#endif
