/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: a reply that the event thread pulls from an api_stream.
 *
 * When the stream has nothing, the connection is suspended first and the stream armed afterwards,
 * so that no wake can be lost; wake, hang-up and shutdown all resume, and only the first one does.
 * After the last byte, or when the client is gone, libmicrohttpd drops the response and with it the
 * stream.
 */
#ifndef KERND_SERVER_STREAM_H
#define KERND_SERVER_STREAM_H

struct exchange;
struct MHD_Response;

/* Takes exchange->call.reply.stream over, also on failure (NULL). Event thread. */
struct MHD_Response *stream_response(struct exchange *exchange);

#endif
