/*-------------------------------------------------------------------------
 *
 * other.h
 *	  What the files of this extension share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef OTHER_H
#define OTHER_H

extern void other_nodes_init(void); /* nodes.c; call once, from _PG_init */

#endif							/* OTHER_H */
