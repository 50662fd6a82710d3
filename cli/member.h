/* What `hfsad cloud`, `edge` and `client` have in common: a process that hosts nodes of a federation. */
#ifndef HFSAD_CLI_MEMBER_H
#define HFSAD_CLI_MEMBER_H

#include "cli.h"
#include "net/federation.h"
#include "net/metrics.h"
#include "net/topic.h"
#include "spec/settings.h"

typedef enum { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG } log_level;
/* Words of the options, the last one NULL: of log_level, and of --log. */
extern const char *const member_levels[], *const member_forms[];
/* Of --durability and --rows. */
enum { DURABLE_POWER, DURABLE_PROCESS };
enum { ROWS_IN_MEMORY, ROWS_ON_DISK };

typedef struct {
    const char *command, *spec_path;
    cli_texts sets;
    const char *name, *all_of, *data; /* of a client, the first also of an edge */
    const char *broker, *above, *below;
    const char *ca, *certificate, *key, *keys;
    const char *state, *out, *record, *metrics;
    bool insecure, quiet;
    int log, level, durability, rows;
    int64_t keepalive; /* s; 0: the transport's own */
    double linger;     /* seconds after the end in which late children still get an answer */
} member_arguments;

typedef enum { ROLE_CLOUD, ROLE_EDGE, ROLE_CLIENT } member_role;

typedef struct member member;

/* Additional work of the cloud: NULL for the others. */
typedef struct {
    void *context;
    /* Once, before the state folder is touched: spec and tree are there. CLI_GO or an exit status. */
    int (*check)(void *context, const member *m);
    /* The root has its node. */
    hfsad_status (*begin)(void *context, const member *m, const inquiry_turns *turns, hfsad_error *err);
    /* To the end of the run, or until it is interrupted. */
    hfsad_status (*train)(void *context, hfsad_error *err);
    /* Called within turns of the host, for its events. */
    void (*finish_row)(void *context, const node *root, hfsad_figures *row);
    void (*row)(void *context, const hfsad_figures *row);
    /* After every turn since `begin`. */
    void (*turn)(void *context);
    /* All is over, or interrupted; the exit status. */
    int (*end)(void *context, const member *m);
} member_cloud;

/* Lines logged after that time. */
typedef struct {
    double since; /* on clock_seconds */
    unsigned lines;
} flood;
enum { FLOODS = 16 };

struct member {
    member_arguments args;
    member_role role;
    const member_cloud *cloud;
    hfsad_spec *spec;
    federation *f;
    store *state;
    char *state_folder;
    size_t state_made; /* of it, for folder_unmake */
    host *h;
    metrics *metrics;  /* NULL: no metrics */
    char *scratch;     /* folder for rows on the disk; NULL: they are kept in memory */
    transport *way[2]; /* above, below; the same if there is one broker */
    size_t number;
    bool begun;
    double down_since; /* there is no broker since, on clock_seconds; 0: there is one */
    bool down_told;
    uint64_t seen_round; /* of its first node, at seen_at */
    double seen_at;
    bool wait_told;
    char down_text[300];
    flood floods[FLOODS];   /* of messages that are refused, by the reason */
    unsigned strangers[2];  /* ASKs and DOWNs of another run from the first node's parent in this connection */
    uint64_t last_stranger; /* a child with another spec, and why: of these a print */
    char reason[600];       /* why another run is another */
    hfsad_error wrong;
    bool is_wrong;
    bool is_up;        /* there is a connection */
    bool is_dismissed; /* the cloud has ended because of an error in its files or in the data */
};

/* The arguments from the command line; CLI_GO or an exit status. a->sets.room has argc places. */
int member_parse(member_arguments *a, member_role role, int argc, char **argv);
int member_run(const member_arguments *a, member_role role, const member_cloud *cloud);

/* The spec with its sets; CLI_GO or an exit status. */
int member_load(hfsad_spec **spec, const char *path, const cli_texts *sets, const char *command);
/* The tree: from federation.nodes, or from the data. */
hfsad_status member_shape(dataset **shape, const hfsad_spec *spec, hfsad_error *err);
/* "spec-state/edge1+client7", "spec-state/edge1++clients": the folder of a node's state, or of all clients of an inner
 * node; unique, because names have no +. The caller frees it; NULL: no memory. */
char *member_state_path(const char *folder, const char *path, bool clients);
/* Refuses an open connection to another machine. */
hfsad_status member_check_broker(const char *url, bool insecure, hfsad_error *err);

/* One line on stderr. text and from may be "". */
void member_log(const member_arguments *a, log_level level, const char *path, const char *event, const char *text,
                const char *from);

#endif
