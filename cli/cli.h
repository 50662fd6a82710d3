/*
 * What the commands share: a table-driven parser of arguments, failures as one line and an exit status, and the
 * flag that Ctrl-C raises.
 *
 * Exit status: 0 done, 1 the run failed, 2 the spec, data or arguments are wrong, 128 + signal when interrupted
 * (SIGHUP, SIGINT, SIGTERM) or when stdout's reader went away (SIGPIPE).
 */
#ifndef HFSAD_CLI_CLI_H
#define HFSAD_CLI_CLI_H

#include "hfsad/hfsad.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_WRONG = 2, CLI_AGAIN = 75 /* EX_TEMPFAIL of sysexits.h */ };

/* argv[0] is the command's name; the return value is the exit status. */
int cmd_run(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_path(int argc, char **argv);
int cmd_paper(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_assign(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_settings(int argc, char **argv);
int cmd_keys(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_cloud(int argc, char **argv);
int cmd_edge(int argc, char **argv);
int cmd_client(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_privacy(int argc, char **argv);
int cmd_readmit(int argc, char **argv);
int cmd_retire(int argc, char **argv);
int cmd_admit(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_state(int argc, char **argv);
int cmd_runs(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_dash(int argc, char **argv);

typedef enum {
    CLI_FLAG,   /* bool *: true if given */
    CLI_TEXT,   /* const char **: points into argv, never empty */
    CLI_NEEDED, /* the same, NULL before the call; must be given */
    CLI_WHOLE,  /* int64_t *: least <= value <= most */
    CLI_REAL,   /* double *: finite, least <= value <= most */
    CLI_CHOICE, /* int *: index into choices */
    CLI_TEXTS,  /* cli_texts *: may be given many times; the others: the last one counts */
} cli_kind;

/* room has at least argc places. */
typedef struct {
    size_t count;
    const char **room;
} cli_texts;

typedef struct {
    const char *name; /* "out" for --out */
    cli_kind kind;
    void *value;                /* holds the default before the call */
    double least, most;         /* WHOLE and REAL, both ends allowed; not beyond 2^53 for WHOLE */
    const char *const *choices; /* CHOICE: ends with NULL */
    const char *operand;        /* its name in the help: "DIR"; NULL for a flag */
    const char *help;           /* what it does, with the default; may have several lines */
} cli_option;

typedef struct {
    const char *usage; /* "run SPEC.yaml [--out DIR]", without "hfsad "; may have several lines */
    const char *about; /* a paragraph or more, ends without a newline */
    const cli_option *options;
    size_t n_options;
    size_t least_words, most_words; /* arguments that are not options */
    const char *words;              /* what they are, for messages: "a spec file" */
    const char *after;              /* further help after the options, or NULL */
} cli_syntax;

enum { CLI_GO = -1 };

/*
 * Parses options and words in any order: `--name value` and `--name=value`; `--` ends the options; --help and -h print
 * the help. words (may be NULL if most_words is 0) has room for most_words and is filled up with NULL. Returns CLI_GO,
 * or the exit status if the command is over: after the help, or after an error message.
 */
int cli_parse(const cli_syntax *syntax, int argc, char **argv, const char **words);
/* Replaces the printed help by a callback; NULL: prints the help again. */
typedef void (*cli_describer)(const cli_syntax *syntax);
void cli_describe_with(cli_describer describer);

/* "hfsad: message" on stderr; the exit status for err: 2 for wrong input, 1 otherwise. */
int cli_fail(const hfsad_error *err);
/* The message of the last cli_fail; "" if there was none. */
const char *cli_last_failure(void);
/* Prints "hfsad run: message; see hfsad run --help" on stderr (no hint if the message ends in "?"); returns
 * CLI_WRONG. */
__attribute__((format(printf, 2, 3))) int cli_wrong(const char *command, const char *format, ...);
/* The candidate nearest to name, ignoring case; NULL if none is near. candidates ends with NULL. */
const char *cli_nearest(const char *name, const char *const *candidates);
/* An argument as a message shows it: the first 60 bytes or so. */
enum { CLI_SHOWN_SIZE = 64 };
const char *cli_shown(char shown[CLI_SHOWN_SIZE], const char *argument);

/* Puts every KEY=VALUE of --set into the spec; CLI_GO, or the exit status after a line on stderr. */
int cli_apply_sets(hfsad_spec *spec, const cli_texts *sets, const char *command);

/* Numbers of the command line: the whole text must be a number; NaN and infinities are refused; least and most are
 * allowed. */
bool cli_read_real(const char *text, double least, double most, double *value);
bool cli_read_whole(const char *text, double least, double most, int64_t *value);

/* Ctrl-C, SIGTERM and SIGHUP raise a flag once; a second one ends the program at once. */
void cli_catch_interrupts(void);
/* The signal that arrived; 0: none. Any thread may call this. */
int cli_interrupted(void);
/*
 * The line (without a newline; NULL: none) is printed on stderr if cli_interrupts_heed has not been called half a
 * second after the signal. The line must outlive the program's work. Call before cli_catch_interrupts.
 */
void cli_when_slow(const char *line);
void cli_interrupts_heed(void);

/*
 * Flushes stdout. Returns status, or CLI_FAILED with a line on stderr if stdout could not be written. If the reader
 * closed the pipe (hfsad settings | head), nothing is printed and the status is that of a program ended by SIGPIPE.
 */
int cli_finish_stdout(int status);

#endif
