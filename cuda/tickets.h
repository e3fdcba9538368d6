/*-------------------------------------------------------------------------
 *
 * tickets.h
 *	  Transfers to a device that no thread waits for (tickets.cu).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_TICKETS_H
#define HGJ_CUDA_TICKETS_H

#include "internal.h"

namespace hgj
{

/* So many sets of transfers of a stream may be under way. */
constexpr uint64_t TICKETS = 64;

struct Tickets
{
	cudaEvent_t events[TICKETS]; /* of ticket t, number t % TICKETS; */
	uint64_t sent;               /* tickets so far, */
	uint64_t come;               /* of which the first so many have passed */
};

bool tickets_open(Tickets *tickets);
void tickets_close(Tickets *tickets);
HgjStatus tickets_new(Tickets *tickets, cudaStream_t stream, uint64_t *ticket,
					  HgjError *err);
HgjStatus tickets_order(Tickets *tickets, uint64_t ticket, cudaStream_t stream,
						bool *waits, HgjError *err);

} // namespace hgj

#endif /* HGJ_CUDA_TICKETS_H */
