/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_exchange: the requests of one POST, from their reading to the reply. For the mcp rooms.
 *
 * Each request is answered now or later, from any thread; the exchange when all of them are.
 */
#ifndef KERND_API_MCP_EXCHANGE_H
#define KERND_API_MCP_EXCHANGE_H

#include <json.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/mcp_request.h"

/*
 * For up to max requests; the tree that their messages point into is taken over. sse: the client
 * takes the reply as an event stream only.
 */
struct mcp_exchange *mcp_exchange_new(struct api_call *call, struct json_object *tree, size_t max,
                                      bool sse);

/* The reply is an array of all answers. */
void mcp_exchange_set_batch(struct mcp_exchange *exchange);

/* Takes what is in the message over. A request that has an answer by mcp_exchange_begin keeps it.
 */
struct mcp_request *mcp_exchange_add(struct mcp_exchange *exchange,
                                     const struct mcp_message *message, const char *client,
                                     bool stateless);

/* Starts the work; the exchange and the call must not be touched afterwards. */
void mcp_exchange_begin(struct mcp_exchange *exchange);

/* A Mcp-Session-Id for the reply of the one request there is; before it is done. */
void mcp_exchange_name_client(struct mcp_exchange *exchange, const char *client);

/* Runs something for it: a reference is taken over. The waiter is called as by execution_wait. */
void mcp_exchange_run(struct mcp_request *request, struct execution *execution,
                      struct execution_waiter *waiter);

/* Something is done for it that ends when this is fired; NULL: that is over. */
void mcp_exchange_set_work(struct mcp_request *request, struct cancel *cancel);

/* For mcp_live: marks it as cancelled. False: it was; true: what is to be ended (or NULL). */
bool mcp_exchange_mark(struct mcp_request *request, struct execution **ret_execution);

/* Nobody wants the answer any more. */
bool mcp_exchange_is_cancelled(struct mcp_request *request);

/* The answer is complete. The request must not be touched afterwards. */
void mcp_exchange_done(struct mcp_request *request);

/* The same for an answer that is an error of the protocol. */
void mcp_exchange_fail(struct mcp_request *request, const struct mcp_message_fault *fault);

/* Ends what runs; the exchange is the caller's for the time of the call. */
void mcp_exchange_leave(struct mcp_exchange *exchange, enum cancel_reason reason);

#endif
