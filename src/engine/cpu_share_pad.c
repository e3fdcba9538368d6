/*-------------------------------------------------------------------------
 *
 * cpu_share_pad.c
 *	  Padded segments (Ellpack, Sliced Ellpack) of a graph that several processes
 *	  build: the last two steps of cpu_share.c.
 *
 * 1. From a complete CSR image all of them find out alike how many slots the
 *	  padding takes.  Where that is too much, CSR stays, and a note says so.
 * 2. Each copies the lists of its share of the slices to a second image, behind
 *	  the slots of the slices before, which it counts for itself.
 *
 * Images belong to the caller.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_share.h"

static uint64_t
slice_count(uint64_t vertices)
{
	return (vertices + HGJ_SLICE - 1) / HGJ_SLICE;
}

/* The slots that every vertex of a slice gets. */
static uint64_t
slice_width(Image *csr, HgjSegments segments, uint64_t slice)
{
	const uint32_t *offsets = image_at(csr, csr->offsets);
	uint64_t	v = slice * HGJ_SLICE;
	uint64_t	end = v + HGJ_SLICE;
	uint32_t	width = 0;

	if (segments == HGJ_SEGMENTS_ELLPACK)
		return csr->longest;
	end = end > csr->graph.vertices ? csr->graph.vertices : end;
	for (; v < end; v++)
	{
		uint32_t	list = offsets[v + 1] - offsets[v];

		width = list > width ? list : width;
	}
	return width;
}

/* Where the slots of a slice begin, in Sliced Ellpack. */
static HgjStatus
slice_start(Step *s, Image *csr, uint64_t slice, uint64_t *slot)
{
	uint64_t	i;

	*slot = 0;
	for (i = 0; i < slice; i++)
	{
		*slot += slice_width(csr, HGJ_SEGMENTS_SLICED, i) * HGJ_SLICE;
		if ((i + 1) % (HGJ_POLL_STEPS / HGJ_SLICE) == 0)
		{
			HgjStatus	status = hgj_poll(&s->table->spec, s->err);

			if (status != HGJ_OK)
				return status;
		}
	}
	return HGJ_OK;
}

/* The padded image that was asked for; *fits: it is affordable. */
static HgjStatus
padded_image(Step *s, Image *csr, Image *image, bool *fits)
{
	uint64_t	slots = csr->longest * csr->graph.vertices;
	HgjStatus	status = HGJ_OK;

	if (s->plan.segments == HGJ_SEGMENTS_SLICED)
		status = slice_start(s, csr, slice_count(csr->graph.vertices), &slots);
	*fits = status == HGJ_OK && hgj_cpu_image_padded(s->table, csr, slots, image);
	return status;
}

/* SHARE_SEGMENTS */
HgjStatus
hgj_cpu_share_segments(Step *step)
{
	bool		fits = false;
	Image		image;

	if (step->plan.segments != HGJ_SEGMENTS_CSR)
	{
		HgjStatus	status = padded_image(step, step->image, &image, &fits);

		if (status != HGJ_OK)
			return status;
	}
	if (fits && hgj_cpu_share_ask(step, &image, step->image) == HGJ_OK)
	{
		step->then = SHARE_PAD;
		return HGJ_OK;
	}
	step->next->done = true;
	step->then = SHARE_DONE;
	return HGJ_OK;
}

/* Copy the lists of a slice; its slots begin at `slot`.  How many it has. */
static uint64_t
pad_slice(Image *csr, Image *image, const Image *padded, uint64_t slice,
		  uint64_t slot)
{
	const uint32_t *offsets = image_at(csr, csr->offsets);
	const uint8_t *from = image_at(csr, csr->entries);
	uint8_t    *to = image_at(image, padded->entries);
	uint64_t	stride = padded->graph.stride;
	bool		ellpack = padded->graph.segments == HGJ_SEGMENTS_ELLPACK;
	uint64_t	width = slice_width(csr, padded->graph.segments, slice);
	uint64_t	v = slice * HGJ_SLICE;
	uint64_t	end = v + HGJ_SLICE;
	uint64_t	start = slot;

	for (; v < end && (!ellpack || v < csr->graph.vertices); v++)
	{
		uint64_t	list = 0;

		if (v < csr->graph.vertices)
		{
			list = offsets[v + 1] - offsets[v];
			memcpy(to + slot * stride, from + offsets[v] * stride,
				   (size_t) (list * stride));
		}
		memset(to + (slot + list) * stride, 0xFF,
			   (size_t) ((width - list) * stride));
		slot += width;
	}
	return slot - start;
}

/* SHARE_PAD */
HgjStatus
hgj_cpu_share_pad(Step *step)
{
	Image	   *csr = step->build->old_image;
	uint64_t	done = 0;
	uint64_t	slot = 0;
	uint64_t   *slices = NULL;
	uint64_t	from;
	uint64_t	to;
	Image		image;
	bool		fits;
	HgjStatus	status = padded_image(step, csr, &image, &fits);

	if (status == HGJ_OK)
		status = hgj_cpu_share_begin(step, &image);
	if (status != HGJ_OK)
		return status;
	hgj_cpu_share_of(step, slice_count(csr->graph.vertices), &from, &to);
	if (image.slices > 0)
		slices = image_at(step->image, image.slices);
	if (slices != NULL)
		status = slice_start(step, csr, from, &slot);
	else
		slot = from * HGJ_SLICE * image.graph.width;
	for (; status == HGJ_OK && from < to; from++)
	{
		uint64_t	slots = pad_slice(csr, step->image, &image, from, slot);

		if (slices != NULL)
			slices[from] = slot;
		slot += slots;
		done += slots;
		if (done >= HGJ_POLL_STEPS)
		{
			status = hgj_poll(&step->table->spec, step->err);
			done = 0;
		}
	}
	if (status == HGJ_OK && step->build->part + 1 == step->build->nparts)
	{
		if (slices != NULL)
			slices[to] = slot;
		memset((uint8_t *) image_at(step->image, image.entries) +
			   image.graph.entries_bytes - 64, 0xFF, 64);
	}
	step->then = SHARE_DONE;
	return status;
}
