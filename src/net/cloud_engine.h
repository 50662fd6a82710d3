/* The federation below the cloud as the engine of a run: run_train drives it as it drives the simulator. */
#ifndef HFSAD_NET_CLOUD_ENGINE_H
#define HFSAD_NET_CLOUD_ENGINE_H

#include "hfsad/net.h"
#include "net/federation.h"
#include "run/train.h"

typedef struct cloud_driver cloud_driver;

/* For inquiry_turns: the user ends the run. */
#define CLOUD_INTERRUPTED ((hfsad_status)1000)

/* The root has its node, of this life or of an earlier one. Everything must outlive the cloud. */
hfsad_status cloud_create(cloud_driver **c, federation *f, host *h, const hfsad_spec *spec, const inquiry_turns *turns,
                          hfsad_error *err);
void cloud_free(cloud_driver *c);
/* The run as run_train and the report see it. */
hfsad_run *cloud_run(cloud_driver *c);

/* A row that an earlier life has stored, the oldest first. */
void cloud_take_old_row(cloud_driver *c, const hfsad_figures *row);
/* Completes a row before it is stored: relative_error and seconds. */
void cloud_finish_row(cloud_driver *c, const node *root, hfsad_figures *row);
/* A row that is stored: it ends the engine's wait. */
void cloud_take_row(cloud_driver *c, const hfsad_figures *row);

/* run_train, then turns until the cloud has the models of all nodes. An interrupted run gets them too if they come
 * within HFSAD_MEMBER_LOOK_SECONDS; a row on the way is passed to the hook. HFSAD_ERROR_DIVERGED is no error here: *end
 * says it. */
hfsad_status cloud_train(cloud_driver *c, const train_hooks *hooks, train_end *end, hfsad_error *err);
/* Whether the models below the cloud are there. */
bool cloud_has_models(const cloud_driver *c);

#endif
