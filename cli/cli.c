/* Arguments, failures and interrupts; see cli.h. */
#include "cli.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Arguments may contain any bytes; a message is one line. */
static void print_line(const char *head, const char *text)
{
    fprintf(stderr, "hfsad%s%s: ", *head ? " " : "", head);
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
    fputc('\n', stderr);
}

/* The library's messages name no options, so the option is appended to the message. */
static const char *option_meant(const char *message)
{
    static const struct {
        const char *words, *option;
    } table[] = {
        {"give another output", " (--out)"},
        {"state folder on a disk of this machine", " (--state)"},
        {"another state folder", " (--state)"},
        {"new state folders", " (--state)"},
        {"needs the certificate of the authority", " (--keys or --ca)"},
        {"exists and is not to be replaced", " (--force)"},
        {"the choice auto", " (--with auto)"},
        {"another choice of models", " (--with)"},
        {"give a list of lambdas", " (--lambdas)"},
        {"or allow it", " (--insecure)"},
        {"name its file of rows", " (--data)"},
        {"name the file with the client's rows", " (--data)"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(message, table[i].words))
            return table[i].option;
    return "";
}

static char last_failure[sizeof((hfsad_error *)0)->message];

const char *cli_last_failure(void)
{
    return last_failure;
}

int cli_fail(const hfsad_error *err)
{
    char line[sizeof err->message + 20];
    const char *text = err->message[0] ? err->message : hfsad_status_text(err->status);
    snprintf(line, sizeof line, "%s%s", text, option_meant(text));
    snprintf(last_failure, sizeof last_failure, "%s", text);
    print_line("", line);
    return err->status == HFSAD_ERROR_INPUT ? CLI_WRONG : CLI_FAILED;
}

int cli_wrong(const char *command, const char *format, ...)
{
    char text[900], line[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t length = strlen(text);
    if (length && text[length - 1] == '?') /* the message already says what would be right */
        snprintf(line, sizeof line, "%s", text);
    else
        snprintf(line, sizeof line, "%s; see hfsad%s%s --help", text, *command ? " " : "", command);
    print_line(command, line);
    return CLI_WRONG;
}

const char *cli_shown(char shown[CLI_SHOWN_SIZE], const char *argument)
{
    size_t n = strnlen(argument, CLI_SHOWN_SIZE);
    if (n < CLI_SHOWN_SIZE) {
        memcpy(shown, argument, n + 1);
        return shown;
    }
    n = CLI_SHOWN_SIZE - 4;
    while (n > 0 && ((unsigned char)argument[n] & 0xc0) == 0x80) /* not within a UTF-8 character */
        n--;
    memcpy(shown, argument, n);
    memcpy(shown + n, "...", 4);
    return shown;
}

const char *cli_nearest(const char *name, const char *const *candidates)
{
    const size_t length = strlen(name);
    const char *best = NULL;
    size_t least = (length + 1) / 2 + 1; /* a larger distance means another word, not a typing error */
    char small[CLI_SHOWN_SIZE];          /* the candidates are in lower case */
    snprintf(small, sizeof small, "%s", name);
    for (char *p = small; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    for (; *candidates; candidates++) {
        const bool begun = length > 1 && !strncmp(small, *candidates, length);
        const size_t distance = begun ? 0 : name_distance(small, *candidates);
        if (distance < least && distance < strlen(*candidates)) {
            least = distance;
            best = *candidates;
        }
    }
    return best;
}

bool cli_read_real(const char *text, double least, double most, double *value)
{
    char *end;
    if (!*text || strspn(text, " \t\n\v\f\r"))
        return false;
    const double v = strtod(text, &end);
    if (*end || !isfinite(v) || !(v >= least && v <= most))
        return false;
    *value = v;
    return true;
}

bool cli_read_whole(const char *text, double least, double most, int64_t *value)
{
    const char *digits = text + (*text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")])
        return false;
    errno = 0;
    const long long v = strtoll(text, NULL, 10);
    if (errno || !((double)v >= least && (double)v <= most))
        return false;
    *value = v;
    return true;
}

static int wrong_number(const char *command, const cli_option *o, const char *text)
{
    const char *kind = o->kind == CLI_WHOLE ? "a whole number" : "a number";
    char shown[CLI_SHOWN_SIZE];
    cli_shown(shown, text);
    if (isinf(o->most))
        return cli_wrong(command, "--%s must be %s of at least %.15g, not '%s'", o->name, kind, o->least, shown);
    return cli_wrong(command, "--%s must be %s from %.15g to %.15g, not '%s'", o->name, kind, o->least, o->most, shown);
}

static int read_choice(const char *command, const cli_option *o, const char *text)
{
    char list[400] = "", shown[CLI_SHOWN_SIZE];
    for (int i = 0; o->choices[i]; i++) {
        if (!strcmp(text, o->choices[i])) {
            *(int *)o->value = i;
            return CLI_GO;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", o->choices[i]);
    }
    cli_shown(shown, text);
    const char *nearest = cli_nearest(text, o->choices);
    if (nearest)
        return cli_wrong(command, "--%s: unknown value '%s'; did you mean %s?", o->name, shown, nearest);
    return cli_wrong(command, "--%s: unknown value '%s'; known: %s", o->name, shown, list);
}

static int read_value(const char *command, const cli_option *o, const char *text)
{
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)o->value = true;
        break;
    case CLI_TEXT:
    case CLI_NEEDED:
        if (!*text)
            return cli_wrong(command, "--%s needs a non-empty %s", o->name, o->operand);
        *(const char **)o->value = text;
        break;
    case CLI_TEXTS: {
        cli_texts *texts = o->value;
        texts->room[texts->count++] = text;
        break;
    }
    case CLI_WHOLE:
        if (!cli_read_whole(text, o->least, o->most, o->value))
            return wrong_number(command, o, text);
        break;
    case CLI_REAL:
        if (!cli_read_real(text, o->least, o->most, o->value))
            return wrong_number(command, o, text);
        break;
    case CLI_CHOICE:
        return read_choice(command, o, text);
    }
    return CLI_GO;
}

static int unknown_option(const cli_syntax *syntax, const char *command, const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (; n < syntax->n_options && n + 2 < sizeof names / sizeof *names; n++)
        names[n] = syntax->options[n].name;
    names[n++] = "help";
    names[n] = NULL;
    const char *nearest = cli_nearest(name + strspn(name, "-"), names);
    if (nearest)
        return cli_wrong(command, "unknown option '%s'; did you mean --%s?", name, nearest);
    char list[400] = "";
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s--%s", i ? ", " : "", names[i]);
    }
    return cli_wrong(command, "unknown option '%s'; known: %s", name, list);
}

/* Parses one option at argv[*at]; *at ends at its last argument. */
static int parse_option(const cli_syntax *syntax, int argc, char **argv, int *at)
{
    const char *argument = argv[*at];
    const char *equals = strchr(argument, '=');
    char name[64];
    const size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), argument);
    if (length >= sizeof name)
        memcpy(name + sizeof name - 4, "...", 4);
    const cli_option *o = NULL;
    for (size_t i = 0; i < syntax->n_options && !o; i++)
        if (!strncmp(name, "--", 2) && !strcmp(name + 2, syntax->options[i].name))
            o = &syntax->options[i];
    if (!o)
        return unknown_option(syntax, argv[0], name);
    if (o->kind == CLI_FLAG && equals)
        return cli_wrong(argv[0], "--%s takes no value", o->name);
    if (o->kind == CLI_FLAG)
        return read_value(argv[0], o, "");
    if (!equals && *at + 1 >= argc)
        return cli_wrong(argv[0], "--%s needs %s", o->name, o->operand);
    return read_value(argv[0], o, equals ? equals + 1 : argv[++*at]);
}

static void print_indented(const char *text, int column)
{
    for (; *text; text++) {
        putchar(*text);
        if (*text == '\n')
            printf("%*s", column, "");
    }
    putchar('\n');
}

static void print_help(const cli_syntax *syntax)
{
    printf("usage: hfsad ");
    print_indented(syntax->usage, 7);
    printf("\n%s\n\noptions:\n", syntax->about);
    for (size_t i = 0; i < syntax->n_options; i++) {
        const cli_option *o = &syntax->options[i];
        char left[80];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->operand ? " " : "", o->operand ? o->operand : "");
        printf("  %-18s  ", left);
        print_indented(o->help, 22);
    }
    printf("  %-18s  this text\n", "-h, --help");
    if (syntax->after)
        printf("\n%s\n", syntax->after);
}

static bool help_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static cli_describer describer;

void cli_describe_with(cli_describer given)
{
    describer = given;
}

int cli_parse(const cli_syntax *syntax, int argc, char **argv, const char **words)
{
    if (help_wanted(argc, argv) && describer) {
        describer(syntax);
        return CLI_DONE;
    }
    if (help_wanted(argc, argv)) {
        print_help(syntax);
        return cli_finish_stdout(CLI_DONE);
    }
    size_t n = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            const int status = parse_option(syntax, argc, argv, &i);
            if (status != CLI_GO)
                return status;
        } else if (n == syntax->most_words) {
            char shown[CLI_SHOWN_SIZE];
            return cli_wrong(argv[0], "unexpected argument '%s'", cli_shown(shown, argv[i]));
        } else {
            words[n++] = argv[i];
        }
    }
    if (n < syntax->least_words)
        return cli_wrong(argv[0], "%s is missing", syntax->words);
    for (const cli_option *o = syntax->options; o < syntax->options + syntax->n_options; o++)
        if (o->kind == CLI_NEEDED && !*(const char **)o->value)
            return cli_wrong(argv[0], "--%s %s is missing", o->name, o->operand);
    for (; n < syntax->most_words; n++)
        words[n] = NULL;
    return CLI_GO;
}

/* These are the only C types that a signal handler and several threads may share. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2, "a handler must not wait for a lock");
static atomic_int interrupted, heeded;
static const char *_Atomic slow_line;
static timer_t slow_timer;
static bool slow_timer_made;

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_CAUGHT = sizeof caught / sizeof *caught };

/* The second signal meets the default action and ends the program. */
static void on_interrupt(int number)
{
    const int kept = errno;
    const struct itimerspec half_a_second = {.it_value.tv_nsec = 500000000};
    atomic_store(&interrupted, number);
    for (int i = 0; i < N_CAUGHT; i++)
        signal(caught[i], SIG_DFL);
    if (slow_timer_made)
        timer_settime(slow_timer, 0, &half_a_second, NULL);
    errno = kept;
}

static void on_slow(int number)
{
    const int kept = errno;
    const char *line = atomic_load(&slow_line);
    (void)number;
    if (line && atomic_load(&interrupted) && !atomic_load(&heeded)) {
        const ssize_t written = write(STDERR_FILENO, line, strlen(line)) + write(STDERR_FILENO, "\n", 1);
        (void)written; /* a failed write cannot be reported */
    }
    errno = kept;
}

/* An ignored signal stays ignored: shells start background jobs so, and nohup does the same. */
static void catch_signal(int number, void (*handler)(int))
{
    struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_catch_interrupts(void)
{
    for (int i = 0; i < N_CAUGHT; i++)
        catch_signal(caught[i], on_interrupt);
}

int cli_interrupted(void)
{
    return atomic_load(&interrupted);
}

/* A handler may call timer_settime, which raises SIGALRM. */
void cli_when_slow(const char *line)
{
    atomic_store(&slow_line, line);
    if (!line || slow_timer_made)
        return;
    catch_signal(SIGALRM, on_slow);
    slow_timer_made = timer_create(CLOCK_MONOTONIC, NULL, &slow_timer) == 0;
}

void cli_interrupts_heed(void)
{
    atomic_store(&heeded, 1);
}

/* An earlier write may have failed, and stdio keeps no reason, so the pipe is checked. */
static bool reader_is_gone(int reason)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return reason == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR));
}

int cli_finish_stdout(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    const int reason = errno;
    if (reader_is_gone(reason))
        return 128 + SIGPIPE;
    fprintf(stderr, "hfsad: standard output could not be written: %s\n", strerror(reason ? reason : EIO));
    return CLI_FAILED;
}

#define BLANKS " \t"

int cli_apply_sets(hfsad_spec *spec, const cli_texts *sets, const char *command)
{
    hfsad_error err = {0};
    for (size_t i = 0; i < sets->count; i++) {
        char key[256];
        char shown[CLI_SHOWN_SIZE];
        const char *text = sets->room[i] + strspn(sets->room[i], BLANKS), *equals = strchr(text, '=');
        cli_shown(shown, sets->room[i]);
        if (!equals || equals == text)
            return cli_wrong(command, "--set needs KEY=VALUE, such as run.iterations=100, not '%s'", shown);
        size_t length = (size_t)(equals - text);
        while (length > 0 && strchr(BLANKS, text[length - 1]))
            length--;
        if (length >= sizeof key)
            return cli_wrong(command, "--set: the key of '%s' has %zu bytes; no key has more than %d", shown, length,
                             (int)sizeof((hfsad_setting *)NULL)->key - 1);
        snprintf(key, sizeof key, "%.*s", (int)length, text);
        if (hfsad_spec_set(spec, key, equals + 1, &err)) {
            hfsad_error named = {.status = err.status}; /* names the option that the user typed */
            snprintf(named.message, sizeof named.message, "--set %.*s", (int)sizeof named.message - 7, err.message);
            return cli_fail(&named);
        }
    }
    return CLI_GO;
}
