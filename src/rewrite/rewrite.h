/*-------------------------------------------------------------------------
 *
 * rewrite.h
 *	  Joins that stand in a query as subqueries: found, and made joins, before the
 *	  query is planned (choose.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_REWRITE_H
#define HGJ_REWRITE_H

extern void hgj_install_rewrite_hook(void);
extern void hgj_install_group_estimates(void);
extern void hgj_install_extreme_estimates(void);

#endif							/* HGJ_REWRITE_H */
