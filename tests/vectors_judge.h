/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges a case: runs its operation, once or with several sets of flags, and
 * holds the outcome against what the case's policy asks for.
 */
#ifndef PDX_VECTORS_JUDGE_H
#define PDX_VECTORS_JUDGE_H

#include "vectors_case.h"

enum vec_verdict { VEC_PASSED, VEC_FAILED, VEC_SKIPPED };

#define VEC_TEXT_MAX 4096

/* ret_text: why it failed or is skipped. */
enum vec_verdict vec_judge(struct vec_case *c, char ret_text[VEC_TEXT_MAX]);

#endif
