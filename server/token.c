/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: make, read and compare the token.
 * Owns: nothing.
 * Threads: token_load main; token_check any.
 * May include: http_guard.h, api.h, lib/base.
 */
#include "server/token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

#define RANDOM_BYTES 32
#define OTHERS (S_IRWXG | S_IRWXO)
#define TOKEN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-"

static int path_error(const char *path, struct err *err)
{
    return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
}

static int unusable(const char *path, const char *why, struct err *err)
{
    (void)err_set(err, ERR_IO, 0, "the token file %s %s", path, why);
    return err_remedy(err, "remove it: a new one is made at the next start");
}

static int make_file(const char *path, struct token *ret_token, struct err *err)
{
    unsigned char random[RANDOM_BYTES];
    char line[2 * RANDOM_BYTES + 2];

    id_random(random, sizeof(random));
    id_hex(random, sizeof(random), line);
    memcpy(ret_token->text, line, strlen(line) + 1);
    ret_token->length = strlen(line);
    line[ret_token->length] = '\n';
    return fd_write_file(path, line, ret_token->length + 1, 0600) == 0 ? 0 : path_error(path, err);
}

static int read_file(int fd, const char *path, struct token *ret_token, struct err *err)
{
    struct stat status;
    char line[TOKEN_LENGTH_MAX + 3];
    ssize_t length = read(fd, line, sizeof(line) - 1);
    size_t used;

    if (length < 0 || fstat(fd, &status) < 0) {
        return path_error(path, err);
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & OTHERS) != 0) {
        return unusable(path, "is not a private file of this user", err);
    }
    line[length] = '\0';
    used = strspn(line, TOKEN_CHARACTERS);
    if (used < TOKEN_LENGTH_MIN || used > TOKEN_LENGTH_MAX ||
        line[used + strspn(line + used, "\r\n")] != '\0') {
        return unusable(path, "holds no token", err);
    }
    memcpy(ret_token->text, line, used);
    ret_token->text[used] = '\0';
    ret_token->length = used;
    return 0;
}

int token_load(const char *path, struct token *ret_token, struct err *err)
{
    /* O_NONBLOCK: somebody may have put a FIFO there. */
    CLEANUP_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return errno == ENOENT ? make_file(path, ret_token, err) : path_error(path, err);
    }
    return read_file(fd, path, ret_token, err);
}

/* ---- what a request shows ---- */

static bool is_in_query(const char *target)
{
    static const char *const names[] = { "token=", "access_token=", "api_key=", "apikey=" };
    const char *at = strchr(target, '?');

    while (at != NULL) {
        at++;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (strncasecmp(at, names[i], strlen(names[i])) == 0) {
                return true;
            }
        }
        at = strchr(at, '&');
    }
    return false;
}

static int refuse(const char *why, struct err *err)
{
    (void)err_set(err, ERR_UNAUTHORIZED, 0, "%s", why);
    return err_remedy(err, "send the header 'Authorization: Bearer TOKEN' with the token from the "
                           "file that kernd named when it started, or use its Unix socket");
}

/* The credential's text; NULL with *ret_is_bad when fields are doubled or of another scheme. */
static const char *shown_token(const struct http_guard_head *head, bool *ret_is_bad)
{
    size_t authorizations = 0;
    size_t keys = 0;
    const char *authorization = http_guard_only(head, "Authorization", &authorizations);
    const char *key = http_guard_only(head, "X-API-Key", &keys);

    *ret_is_bad = authorizations + keys > 1;
    if (authorization == NULL) {
        return key;
    }
    if (strncasecmp(authorization, "Bearer ", 7) != 0) {
        *ret_is_bad = true;
        return NULL;
    }
    authorization += 7;
    return authorization + strspn(authorization, " ");
}

/* The length is no secret; the characters are. */
static bool is_main(const struct token *token, const char *shown)
{
    return strlen(shown) == token->length &&
           text_equal_constant_time(shown, token->text, token->length);
}

int token_check(const struct token *token, struct api *api, const struct http_guard_head *head,
                bool trusted_peer, struct api_identity *ret_identity, struct err *err)
{
    bool is_bad = false;
    const char *shown = shown_token(head, &is_bad);

    if (is_in_query(head->target)) {
        return refuse("a token must not be sent in the URL", err);
    }
    if (is_bad) {
        return refuse("exactly one Authorization: Bearer or X-API-Key field is understood", err);
    }
    if (shown == NULL && !trusted_peer) {
        return refuse("this request needs the token", err);
    }
    if (shown == NULL || is_main(token, shown)) {
        *ret_identity = (struct api_identity){ .caller = 0, .scope = API_SCOPE_FULL };
        return 0;
    }
    if (api == NULL || !api_identify(api, shown, ret_identity)) {
        return refuse("the token is not the right one", err);
    }
    return 0;
}
