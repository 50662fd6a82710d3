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

/* Number of lines logged since a point in time, to limit floods. */
typedef struct {
    double since; /* on clock_seconds */
    unsigned lines;
} flood;
enum { FLOODS = 16 };

/* The cloud's own state (member_cloud.c). */
typedef struct {
    cloud_driver *driver; /* NULL: training has not begun */
    report *report;
    hfsad_figures figures; /* of the last row, also from before a restart */
    bool has_row, write_failed;
    double write_next;
    uint64_t repairs;    /* number of the safeguard's repairs that have been logged */
    double readmit_next; /* time of the next look for requests of the operator */
    int lock;
    size_t made;
} cloud_part;

struct hfsad_member {
    hfsad_member_settings s; /* its texts are copies, kept in `texts` */
    char *texts[18];
    hfsad_spec *spec;
    federation *f;
    store *state;
    size_t state_made; /* number of created folders, for folder_unmake */
    host *h;
    metrics *metrics;  /* NULL: no metrics */
    char *scratch;     /* folder for rows on disk; NULL: rows are in memory */
    transport *way[2]; /* to the parents, to the children; equal if there is one broker */
    size_t number;
    cloud_part cloud;
    char ca[4096], revoked[4096]; /* files in the folder of keys */
    char *secret;                 /* the content of settings.secret; NULL: none */
    size_t secret_size;
    FILE *audit; /* NULL: none */
    atomic_bool cancelled;
    hfsad_stop stop;   /* INTERRUPTED until the run has ended */
    double down_since; /* time of the disconnect, on clock_seconds; 0: connected */
    bool down_told;
    uint64_t seen_round; /* round of its first node at seen_at */
    double seen_at;
    bool wait_told;
    char down_text[300];
    flood floods[FLOODS]; /* log lines about refused messages, by reason */
    unsigned
        strangers[2]; /* number of ASKs and DOWNs of another run from the first node's parent, in this connection */
    uint64_t last_stranger; /* hash of the last child with another spec and of the difference */
    char reason[600];       /* how the other run's spec differs */
    hfsad_error wrong;
    bool is_wrong;
    bool is_up;         /* connected */
    uint64_t list_seen; /* hash of the list of nodes */
    double list_next;   /* time of the next look at the list */
    bool grown;         /* the list has new nodes below this one: the process has to restart */
    bool is_dismissed;  /* the cloud has ended the run because of an error in its files or in the data */
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

/* Opens the cloud's output folder; call it before the state folder is touched. */
hfsad_status member_open_out(hfsad_member *m, hfsad_error *err);
void member_close_out(hfsad_member *m);
/* Prefix of the operator's requests for readmission, files in the cloud's state folder (member_readmit.c). */
#define READMIT_NAME "readmit-"
/* The reason why a node of this kind cannot be readmitted; NULL: it can. */
const char *readmit_refusal(const hfsad_spec *spec, bool above);
void member_readmit(hfsad_member *m);
/* Reads the readmissions from before a restart, for trace and summary. */
hfsad_status member_take_readmissions(hfsad_member *m, hfsad_error *err);
/* Notes the current list of nodes; member_has_grown: whether the list has grown since. */
void member_note_list(hfsad_member *m);
bool member_has_grown(hfsad_member *m);
#define MEMBER_GROWN ((hfsad_status)1001)
/* Cloud: trains until the end of the run, or until the run is cancelled. */
hfsad_status member_train(hfsad_member *m, const inquiry_turns *turns, hfsad_error *err);

/* Reads the tree: from `nodes` (a list as text), from federation.nodes, or from the data. scratch: as for
 * dataset_read_client. */
hfsad_status member_shape(dataset **shape, const hfsad_spec *spec, const char *nodes, const char *scratch,
                          hfsad_error *err);
/* Reads the rows of this process's clients into the federation. */
hfsad_status member_read_rows(hfsad_member *m, hfsad_error *err);

/* Finds the folder for rows on disk. */
hfsad_status member_find_scratch(hfsad_member *m, hfsad_error *err);
hfsad_status member_open_state(hfsad_member *m, hfsad_error *err);
void member_close_state(hfsad_member *m);
hfsad_status member_write_record(const hfsad_member *m, hfsad_error *err);
/* Writes a client's models if the client has an output folder. */
hfsad_status member_write_own(const hfsad_member *m, hfsad_error *err);
/* An error for an unencrypted connection to another machine, unless insecure. */
hfsad_status member_check_broker(const char *url, bool insecure, hfsad_error *err);

#endif
