/* The cloud's coefficients along a trained path, in the units that lambda applies to. */
#ifndef HFSAD_LAB_PATH_PICTURE_H
#define HFSAD_LAB_PATH_PICTURE_H

#include "base/whole_file.h"
#include "hfsad/hfsad.h"

hfsad_status path_picture_draw(const hfsad_path *made, const whole_file *png, const whole_file *svg, hfsad_error *err);

#endif
