/* A process of a federation: hfsad_member of net.h. */
#ifndef HFSAD_NET_MEMBER_H
#define HFSAD_NET_MEMBER_H

#include "hfsad/net.h"
#include "net/cloud_engine.h"
#include "net/metrics.h"
#include "net/topic.h"
#include "out/report.h"

#include <stdatomic.h>
#include <stdio.h>

/* Lines logged after that time. */
typedef struct {
    double since; /* on clock_seconds */
    unsigned lines;
} flood;
enum { FLOODS = 16 };

/* What only the cloud has (member_cloud.c). */
typedef struct {
    cloud_driver *driver; /* NULL: not begun */
    report *report;
    hfsad_figures figures; /* of the last row, also of an earlier life */
    bool has_row, write_failed;
    double write_next;
    uint64_t repairs;    /* of the safeguard that the log knows */
    double readmit_next; /* when the folder is looked at for nodes that are to be readmitted */
    int lock;
    size_t made;
} cloud_part;

struct hfsad_member {
    hfsad_member_settings s; /* its texts are copies */
    char *texts[18];         /* these */
    hfsad_spec *spec;
    federation *f;
    store *state;
    size_t state_made; /* folders, for folder_unmake */
    host *h;
    metrics *metrics;  /* NULL: no metrics */
    char *scratch;     /* folder for rows on the disk; NULL: they are kept in memory */
    transport *way[2]; /* above, below; the same if there is one broker */
    size_t number;
    cloud_part cloud;
    char ca[4096], revoked[4096]; /* files of the folder of keys */
    char *secret;                 /* the content of settings.secret; NULL: none */
    size_t secret_size;
    FILE *audit; /* NULL: none */
    atomic_bool cancelled;
    hfsad_stop stop;   /* INTERRUPTED until the run has ended */
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
    bool is_up;         /* there is a connection */
    uint64_t list_seen; /* changes with the list of nodes */
    double list_next;   /* when it is looked at again */
    bool grown;         /* it has become longer below this node: the process is to begin anew */
    bool is_dismissed;  /* the cloud has ended because of an error in its files or in the data */
};

/* One line of the log. text and topic may be "". */
void member_log(const hfsad_member *m, hfsad_log_level level, const char *path, const char *event, const char *text,
                const char *topic);

/* For host_settings (member_hear.c); context is the member. */
void member_on_event(void *context, const host_event *event);
void member_on_finish_row(void *context, const node *root, hfsad_figures *row);
bool member_on_other_run(void *context, const char *path, const char *from, const message *said);

/* member_audit.c */
hfsad_status member_open_audit(hfsad_member *m, hfsad_error *err);
void member_on_audit(void *context, const char *path, const char *from, const message *said, const char *refused);

/* The cloud's output folder, before the state folder is touched. */
hfsad_status member_open_out(hfsad_member *m, hfsad_error *err);
void member_close_out(hfsad_member *m);
/* The operator's files in the cloud's state folder begin so: nodes that are to be readmitted (member_readmit.c). */
#define READMIT_NAME "readmit-"
/* Why a node of this kind cannot be readmitted; NULL: it can. */
const char *readmit_refusal(const hfsad_spec *spec, bool above);
void member_readmit(hfsad_member *m);
/* Those of earlier lives, for trace and summary. */
hfsad_status member_take_readmissions(hfsad_member *m, hfsad_error *err);
/* The list of nodes as it is read now; and whether it has grown since. */
void member_note_list(hfsad_member *m);
bool member_has_grown(hfsad_member *m);
#define MEMBER_GROWN ((hfsad_status)1001)
/* The cloud's run from its node to its end, or until it is cancelled. */
hfsad_status member_train(hfsad_member *m, const inquiry_turns *turns, hfsad_error *err);

/* The tree: from `nodes`, a list as text, from federation.nodes, or from the data. scratch: as for
 * dataset_read_client. */
hfsad_status member_shape(dataset **shape, const hfsad_spec *spec, const char *nodes, const char *scratch,
                          hfsad_error *err);
/* The clients' rows, into the federation. */
hfsad_status member_read_rows(hfsad_member *m, hfsad_error *err);

/* The folder that rows on the disk go to. */
hfsad_status member_find_scratch(hfsad_member *m, hfsad_error *err);
hfsad_status member_open_state(hfsad_member *m, hfsad_error *err);
void member_close_state(hfsad_member *m);
hfsad_status member_write_record(const hfsad_member *m, hfsad_error *err);
/* A client's models, if it has an output folder. */
hfsad_status member_write_own(const hfsad_member *m, hfsad_error *err);
/* Refuses an open connection to another machine. */
hfsad_status member_check_broker(const char *url, bool insecure, hfsad_error *err);

#endif
