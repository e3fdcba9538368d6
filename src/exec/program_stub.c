/* Stands in until program.c lands: whoever lands that deletes this file. */
#include "compat.h"
#include "exec/program.h"
HgjProgram *hgj_program_compile(Expr *e, PlanState *p, HgjInputLookup l, void *a, bool m) { return NULL; }
void hgj_program_start(HgjProgram *program, ExprContext *econtext) {}
uint32 hgj_program_filter(HgjProgram *program, const HgjVector *const *inputs, const uint32 *sel, uint32 n, uint32 *out) { return 0; }
const HgjVector *hgj_program_eval(HgjProgram *program, const HgjVector *const *inputs, const uint32 *sel, uint32 n) { return NULL; }
int	hgj_program_input(const HgjProgram *program) { return -1; }
