/*-------------------------------------------------------------------------
 *
 * tickets.cu
 *	  Transfers to a device that no thread waits for.
 *
 * 1. Behind transfers that are sent together an event is recorded in their stream.  It has
 *	  a number, the ticket, that no other one of the stream has.
 * 2. Since the stream does one after the other, tickets pass in their order: it is enough
 *	  to remember how many have, and to ask the next event.
 * 3. Other streams, whose kernels read what is sent, wait for the event.  Once a ticket
 *	  has passed its event is used for another one.
 *
 * Memory: events, from tickets_open to tickets_close.  Locks: the caller's, around each
 * call.
 *
 *-------------------------------------------------------------------------
 */
#include "tickets.h"

namespace hgj
{

/* Of zeroed memory; false: not all of it, and what there is is to be closed. */
bool tickets_open(Tickets *tickets)
{
	for (cudaEvent_t &event : tickets->events)
		if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
			return false;
	return true;
}

void tickets_close(Tickets *tickets)
{
	for (cudaEvent_t event : tickets->events)
		if (event != nullptr)
			(void) cudaEventDestroy(event);
}

/* Step 2: has it passed?  Not that anybody knew, where the device is lost. */
static bool has_come(Tickets *tickets, uint64_t ticket)
{
	while (tickets->come < ticket)
	{
		if (cudaEventQuery(tickets->events[(tickets->come + 1) % TICKETS]) != cudaSuccess)
		{
			(void) cudaGetLastError();
			return false;
		}
		tickets->come++;
	}
	return true;
}

/* Step 1: behind what is in the stream now.  *ticket is 0 if too many are under way. */
HgjStatus tickets_new(Tickets *tickets, cudaStream_t stream, uint64_t *ticket,
					  HgjError *err)
{
	*ticket = 0;
	if (tickets->sent - tickets->come == TICKETS && !has_come(tickets, tickets->come + 1))
		return HGJ_OK;
	HGJ_CUDA(cudaEventRecord(tickets->events[(tickets->sent + 1) % TICKETS], stream));
	*ticket = ++tickets->sent;
	return HGJ_OK;
}

/* Step 3: the stream waits for the ticket, if that has not passed; *waits: does it? */
HgjStatus tickets_order(Tickets *tickets, uint64_t ticket, cudaStream_t stream,
						bool *waits, HgjError *err)
{
	*waits = !has_come(tickets, ticket);
	if (*waits)
		HGJ_CUDA(cudaStreamWaitEvent(stream, tickets->events[ticket % TICKETS]));
	return HGJ_OK;
}

} // namespace hgj
