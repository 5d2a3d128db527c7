/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: tell well-formed words.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/grammar.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/text.h"

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LETTERS UPPER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

#define DOMAIN_MAX 253
#define DOMAIN_LABEL_MAX 63
#define CAPABILITY_MAX 32
#define APPARMOR_MAX 128
#define IMAGE_MAX 512
#define LABEL_KEY_MAX 64
#define MODULE_MAX 128

/* One byte of these? NUL is of none. */
static bool is_one_of(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte) != NULL;
}

static bool is_all_of(const char *text, const char *bytes)
{
    return text[strspn(text, bytes)] == '\0';
}

static bool fits_profile(const char *text)
{
    static const char *const kinds[] = { "vcpu:", "vgpio:", "vdisk:" };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (text_starts_with(text, kinds[i])) {
            const char *name = text + strlen(kinds[i]);

            return is_one_of(*name, LETTERS DIGITS) && is_all_of(name, LETTERS DIGITS "._-");
        }
    }
    return false;
}

static bool fits_domain_label(const char *label, size_t size)
{
    return size > 0 && size <= DOMAIN_LABEL_MAX && strspn(label, LETTERS DIGITS "-") >= size &&
           label[0] != '-' && label[size - 1] != '-';
}

static bool fits_domain(const char *text)
{
    const char *dot = strchr(text, '.');

    if (strlen(text) > DOMAIN_MAX || dot == NULL) {
        return false;
    }
    for (; dot != NULL; dot = strchr(text, '.')) {
        if (!fits_domain_label(text, (size_t)(dot - text))) {
            return false;
        }
        text = dot + 1;
    }
    return strlen(text) >= 2 && strlen(text) <= DOMAIN_LABEL_MAX && is_all_of(text, LETTERS);
}

static bool fits_capability(const char *text)
{
    const char *name = text_starts_with(text, "CAP_") ? text + strlen("CAP_") : text;

    if (strlen(text) > CAPABILITY_MAX || !is_one_of(*name, UPPER) ||
        !is_all_of(name, UPPER DIGITS "_")) {
        return false;
    }
    return strstr(name, "__") == NULL && !text_ends_with(name, "_");
}

static bool fits_apparmor(const char *text)
{
    return strlen(text) <= APPARMOR_MAX && is_one_of(*text, LETTERS DIGITS "_.") &&
           is_all_of(text, LETTERS DIGITS "_.-");
}

static bool fits_image(const char *text)
{
    return strlen(text) <= IMAGE_MAX && is_one_of(*text, LETTERS DIGITS "_./") &&
           is_all_of(text, LETTERS DIGITS "_./:@+-");
}

static bool fits_label_key(const char *text)
{
    size_t size = strlen(text);

    return size > 0 && size <= LABEL_KEY_MAX && is_all_of(text, LETTERS DIGITS "._/-") &&
           is_one_of(text[0], LETTERS DIGITS) && is_one_of(text[size - 1], LETTERS DIGITS);
}

const struct grammar_rule grammar_profile = { fits_profile,
                                              "\"vcpu:\", \"vgpio:\" or \"vdisk:\" and a name" };
const struct grammar_rule grammar_domain = {
    fits_domain, "a domain name such as \"pypi.org\": no scheme, port, path or wildcard"
};
const struct grammar_rule grammar_capability = {
    fits_capability, "the name of a capability in capital letters, such as \"ALL\" or \"NET_RAW\""
};
const struct grammar_rule grammar_apparmor = {
    fits_apparmor, "the name of an AppArmor profile: letters, digits, '_', '.' and '-'"
};
const struct grammar_rule grammar_image = { fits_image, "the name of an image" };
const struct grammar_rule grammar_label_key = {
    fits_label_key, "1 to 64 of letters, digits, '.', '_', '-' and '/', and start and end with a "
                    "letter or digit"
};

static bool fits_module(const char *text)
{
    if (strlen(text) > MODULE_MAX) {
        return false;
    }
    for (;;) {
        size_t size = strspn(text, LETTERS DIGITS "_");

        if (size == 0 || is_one_of(text[0], DIGITS)) {
            return false;
        }
        if (text[size] != '.') {
            return text[size] == '\0';
        }
        text += size + 1;
    }
}

const struct grammar_rule grammar_module = { fits_module,
                                             "the name of a python module, at most 128 bytes" };
