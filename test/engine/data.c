/*-------------------------------------------------------------------------
 *
 * data.c
 *	  Rows for the tests: keys of many shapes, selections, row ids.
 *
 * Words after the first take few values, so that keys often differ in one
 * word only.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

static const char *const shape_names[] = {
	"narrow", "wide", "dense", "dense_dup", "same", "skew", "extreme", "high", "sparse"
};

const char *
shape_name(Shape shape)
{
	return shape_names[shape];
}

static uint64_t
one_key(Shape shape, uint32_t i, uint32_t n, uint64_t salt)
{
	static const int64_t extremes[] = {
		INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, 0, -1, 1,
		INT32_MIN, INT32_MAX, (int64_t) UINT32_MAX, (int64_t) UINT32_MAX + 1
	};

	switch (shape)
	{
		case SHAPE_NARROW:
			return (uint64_t) -1000 + (rnd() & 0x7FFFFFFF);
		case SHAPE_WIDE:
			return rnd();
		case SHAPE_DENSE:
			return salt + i;	/* shuffled below */
		case SHAPE_DENSE_DUP:
			return salt + rnd_below(n / 2 + 1);
		case SHAPE_SAME:
			return salt;
		case SHAPE_SKEW:
			return salt * 77 + (UINT64_C(1) << 40) / (rnd_below(1u << 20) + 1);
		case SHAPE_EXTREME:
			return (uint64_t) extremes[rnd_below(COUNT_OF(extremes))];
		case SHAPE_HIGH:
			return (uint64_t) rnd_below(n) << 32;
		case SHAPE_SPARSE:
			return salt - 5 + (uint64_t) rnd_below(n) * 3001;
		case SHAPE_COUNT:
			break;
	}
	return 0;
}

static void
shuffle(uint64_t *a, uint32_t n)
{
	uint32_t	i;

	for (i = n; i > 1; i--)
	{
		uint32_t	j = rnd_below(i);
		uint64_t	t = a[i - 1];

		a[i - 1] = a[j];
		a[j] = t;
	}
}

/* n rows of nwords words; salt moves the keys of some shapes. */
Rows
rows_make(Shape shape, uint32_t nwords, uint32_t n, uint64_t salt)
{
	Rows		rows;
	uint32_t	w;
	uint32_t	i;

	memset(&rows, 0, sizeof(rows));
	rows.n = n;
	rows.nwords = nwords;
	for (w = 0; w < nwords; w++)
	{
		rows.words[w] = must_alloc(n * sizeof(uint64_t));
		for (i = 0; i < n; i++)
			rows.words[w][i] = w == 0 ? one_key(shape, i, n, salt) :
				rnd_below(w == 1 || w == nwords - 1 ? 3 : 1);
	}
	if (shape == SHAPE_DENSE)
		shuffle(rows.words[0], n);
	return rows;
}

/* Probe rows: copies of build keys, and keys that are near them or not. */
Rows
rows_probe(const Rows *build, uint32_t n, uint32_t hit_percent)
{
	Rows		rows;
	uint32_t	w;
	uint32_t	i;

	memset(&rows, 0, sizeof(rows));
	rows.n = n;
	rows.nwords = build->nwords;
	for (w = 0; w < build->nwords; w++)
		rows.words[w] = must_alloc(n * sizeof(uint64_t));
	for (i = 0; i < n; i++)
	{
		uint32_t	from = build->n > 0 ? rnd_below(build->n) : 0;

		for (w = 0; w < build->nwords; w++)
			rows.words[w][i] = build->n > 0 ? build->words[w][from] : rnd();
		if (rnd_below(100) >= hit_percent)
		{
			w = rnd_below(build->nwords);
			switch (rnd_below(4))
			{
				case 0:
					rows.words[w][i]++;
					break;
				case 1:
					rows.words[w][i]--;
					break;
				case 2:
					rows.words[w][i] ^= UINT64_C(1) << rnd_below(64);
					break;
				default:
					rows.words[w][i] = rnd();
			}
		}
	}
	return rows;
}

/* Keep about that many rows; the keys of the others become poison. */
void
rows_select(Rows *rows, uint32_t keep_percent)
{
	uint32_t	i;

	rows->sel = must_alloc(rows->n * sizeof(uint32_t));
	rows->nsel = 0;
	for (i = 0; i < rows->n; i++)
	{
		if (rnd_below(100) < keep_percent)
			rows->sel[rows->nsel++] = i;
		else
			rows->words[0][i] = rows->words[0][rnd_below(rows->n)];
	}
}

/* Give row ids first .. first + n - 1, in order or not. */
void
rows_number(Rows *rows, uint32_t first, bool shuffled)
{
	uint32_t	i;

	rows->first_row = first;
	if (!shuffled)
		return;
	rows->row_ids = must_alloc(rows->n * sizeof(uint32_t));
	for (i = 0; i < rows->n; i++)
		rows->row_ids[i] = first + i;
	for (i = rows->n; i > 1; i--)
	{
		uint32_t	j = rnd_below(i);
		uint32_t	t = rows->row_ids[i - 1];

		rows->row_ids[i - 1] = rows->row_ids[j];
		rows->row_ids[j] = t;
	}
}

void
rows_free(Rows *rows)
{
	uint32_t	w;

	for (w = 0; w < rows->nwords; w++)
		free(rows->words[w]);
	free(rows->sel);
	free(rows->row_ids);
	memset(rows, 0, sizeof(*rows));
}

HgjKeys
rows_keys(const Rows *rows)
{
	HgjKeys		keys;

	memset(&keys, 0, sizeof(keys));
	keys.nrows = rows->n;
	keys.sel = rows->sel;
	keys.nsel = rows->nsel;
	keys.words = (const uint64_t *const *) rows->words;
	keys.location = HGJ_ON_HOST;
	return keys;
}

uint32_t
rows_id(const Rows *rows, uint32_t i)
{
	return rows->row_ids != NULL ? rows->row_ids[i] : rows->first_row + i;
}

/* Walk the selected rows: *cursor begins as 0. */
bool
rows_selected(const Rows *rows, uint32_t *cursor, uint32_t *i)
{
	if (*cursor >= (rows->sel != NULL ? rows->nsel : rows->n))
		return false;
	*i = rows->sel != NULL ? rows->sel[*cursor] : *cursor;
	(*cursor)++;
	return true;
}
