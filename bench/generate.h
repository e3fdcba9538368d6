/*-------------------------------------------------------------------------
 *
 * generate.h
 *	  What the generators of bench/tpch and bench/ssb have in common: random
 *	  numbers, writers of COPY's text format, and the command line.
 *
 *	  1. Every row has random numbers of its own, from its table and its
 *	     number alone: any slice of a table can be made by any process, at any
 *	     time, and is always the same.
 *	  2. Writers append a value and a tab to one buffer; row_end() makes a new
 *	     line of the last tab.  A full buffer goes to stdout.
 *	  3. Comments are pieces of one text of random words, cut anywhere.
 *
 *	  A generator defines tables[] and set_scale() and calls generate_main().
 *	  Nothing is freed: a process makes its slice and ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_GENERATE_H
#define BENCH_GENERATE_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define lengthof(array) ((int) (sizeof(array) / sizeof((array)[0])))

typedef struct Table
{
	const char *name;
	const int64_t *rows;		/* numbered from 1; rows of orders may make several lines */
	void		(*write)(int64_t row);
} Table;

/* of the generator; the last table has no name */
static const Table tables[];
static void set_scale(double scale);

/* ---- random numbers ---------------------------------------------------- */

typedef struct Random
{
	uint64_t	state;
} Random;

static inline uint64_t
mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* The random numbers of a row. */
static inline Random
random_of(uint64_t stream, int64_t row)
{
	Random		random = {mix64(mix64(stream + 1) + (uint64_t) row)};

	return random;
}

static inline uint64_t
random_next(Random *random)
{
	random->state += UINT64_C(0x9e3779b97f4a7c15);
	return mix64(random->state);
}

/* Uniform, both ends included. */
static inline int64_t
random_between(Random *random, int64_t low, int64_t high)
{
	uint64_t	range = (uint64_t) (high - low) + 1;

	return low + (int64_t) (((random_next(random) >> 32) * range) >> 32);
}

#define random_of_list(random, list) ((list)[random_between(random, 0, lengthof(list) - 1)])

/* ---- output ------------------------------------------------------------ */

#define OUT_SIZE (1 << 20)
#define OUT_LONGEST_ROW 4096	/* far more than any table's */

static char out_buffer[OUT_SIZE + OUT_LONGEST_ROW];
static char *out = out_buffer;

static inline void
out_flush(void)
{
	char	   *from = out_buffer;

	while (from < out)
	{
		ssize_t		written = write(STDOUT_FILENO, from, (size_t) (out - from));

		if (written < 0 && errno != EINTR)
		{
			fprintf(stderr, "generate: cannot write: %s\n", strerror(errno));
			exit(1);
		}
		if (written > 0)
			from += written;
	}
	out = out_buffer;
}

static inline void
row_end(void)
{
	out[-1] = '\n';
	if (out - out_buffer >= OUT_SIZE)
		out_flush();
}

static inline void
put_bytes(const char *bytes, int length)
{
	memcpy(out, bytes, (size_t) length);
	out += length;
	*out++ = '\t';
}

static inline void
put_text(const char *text)
{
	put_bytes(text, (int) strlen(text));
}

static inline void
put_char(char c)
{
	*out++ = c;
	*out++ = '\t';
}

/* Digits without a tab, with zeros in front up to the width. */
static inline void
append_digits(int64_t number, int width)
{
	char		digits[24];
	char	   *end = digits + sizeof(digits);
	char	   *at = end;

	do
	{
		*--at = (char) ('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (end - at < width)
		*--at = '0';
	memcpy(out, at, (size_t) (end - at));
	out += end - at;
}

static inline void
append_text(const char *text)
{
	size_t		length = strlen(text);

	memcpy(out, text, length);
	out += length;
}

static inline void
put_int(int64_t number)
{
	if (number < 0)
		*out++ = '-';
	append_digits(number < 0 ? -number : number, 1);
	*out++ = '\t';
}

/* A number of hundredths. */
static inline void
put_cents(int64_t cents)
{
	if (cents < 0)
		*out++ = '-';
	cents = cents < 0 ? -cents : cents;
	append_digits(cents / 100, 1);
	*out++ = '.';
	append_digits(cents % 100, 2);
	*out++ = '\t';
}

/* Such as Customer#000000017. */
static inline void
put_numbered(const char *what, int64_t number)
{
	append_text(what);
	append_digits(number, 9);
	*out++ = '\t';
}

/* ---- dates: days since 1992-01-01 -------------------------------------- */

#define DAYS 2557				/* 1992 to 1998, with two leap years */
#define LAST_ORDER_DAY (DAYS - 1 - 151)		/* 1998-08-02 */

typedef struct Day
{
	int			year;
	int			month;			/* from 1 */
	int			day;			/* from 1 */
	int			of_year;		/* from 1 */
	bool		last_of_month;
} Day;

static Day days[DAYS];

static inline void
make_days(void)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int			number = 0;

	for (int year = 1992; year <= 1998; year++)
	{
		int			of_year = 0;

		for (int month = 1; month <= 12; month++)
		{
			int			length = lengths[month - 1] + (month == 2 && year % 4 == 0);

			for (int day = 1; day <= length; day++)
				days[number++] = (Day) {year, month, day, ++of_year, day == length};
		}
	}
}

static inline void
put_date(int64_t number)
{
	const Day  *day = &days[number];

	append_digits(day->year, 4);
	*out++ = '-';
	append_digits(day->month, 2);
	*out++ = '-';
	append_digits(day->day, 2);
	*out++ = '\t';
}

/* ---- texts ------------------------------------------------------------- */

#define TEXT_SIZE (1 << 20)

static char text_pool[TEXT_SIZE + 16];

/*
 * Words of a length that makes comments look like sentences.  "special" and
 * "requests" are as frequent as it takes for one order comment in ninety to
 * have both, in this order.
 */
static const char *const words[] = {
	"accounts", "above", "across", "after", "against", "along", "among", "asymptotes",
	"blithely", "bold", "boost", "braids", "breach", "brave", "busy", "cajole",
	"careful", "carefully", "close", "courts", "daring", "dependencies", "deposits", "detect",
	"doggedly", "dolphins", "doze", "dugouts", "even", "evenly", "excuses", "express",
	"final", "fluffily", "foxes", "frays", "furiously", "gifts", "grouches", "haggle",
	"idle", "ideas", "instructions", "integrate", "ironic", "kindle", "lose", "nag",
	"never", "packages", "patterns", "pending", "permanent", "pinto", "platelets", "quickly",
	"quiet", "regular", "requests", "requests", "ruthless", "sauternes", "sentiments", "silent",
	"slow", "slyly", "special", "special", "sleep", "stealthy", "the", "theodolites",
	"thin", "toward", "unusual", "use", "waters", "wake", "warhorses", "wish"};

static inline void
make_text_pool(void)
{
	Random		random = random_of(1000, 0);
	char	   *at = text_pool;

	while (at < text_pool + TEXT_SIZE)
	{
		const char *word = random_of_list(&random, words);
		size_t		length = strlen(word);

		if (length + 2 > (size_t) (text_pool + sizeof(text_pool) - at))
			length = 1;
		memcpy(at, word, length);
		at += length;
		if (random_between(&random, 1, 9) == 1 && at < text_pool + TEXT_SIZE)
			*at++ = '.';
		*at++ = ' ';
	}
}

/* A comment without a tab after it. */
static inline void
append_comment(Random *random, int64_t length)
{
	memcpy(out, text_pool + random_between(random, 0, TEXT_SIZE - length), (size_t) length);
	out += length;
}

static inline void
put_comment(Random *random, int shortest, int longest)
{
	append_comment(random, random_between(random, shortest, longest));
	*out++ = '\t';
}

/* An address: random characters. */
static inline void
put_address(Random *random, int shortest, int longest)
{
	static const char characters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
	int64_t		length = random_between(random, shortest, longest);
	uint64_t	bits = 0;

	for (int64_t i = 0; i < length; i++, bits >>= 6)
	{
		if (i % 10 == 0)
			bits = random_next(random);
		*out++ = characters[bits & 63];
	}
	*out++ = '\t';
}

/* ---- what both schemas name -------------------------------------------- */

static const char *const regions[] = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};

static const struct
{
	const char *name;
	int			region;
}			nations[] =
{
	{"ALGERIA", 0}, {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1}, {"EGYPT", 4},
	{"ETHIOPIA", 0}, {"FRANCE", 3}, {"GERMANY", 3}, {"INDIA", 2}, {"INDONESIA", 2},
	{"IRAN", 4}, {"IRAQ", 4}, {"JAPAN", 2}, {"JORDAN", 4}, {"KENYA", 0},
	{"MOROCCO", 0}, {"MOZAMBIQUE", 0}, {"PERU", 1}, {"CHINA", 2}, {"ROMANIA", 3},
	{"SAUDI ARABIA", 4}, {"VIETNAM", 2}, {"RUSSIA", 3}, {"UNITED KINGDOM", 3}, {"UNITED STATES", 1}
};

static const char *const colours[] = {
	"almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush",
	"brown", "burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral", "cornflower",
	"cornsilk", "cream", "cyan", "dark", "deep", "dim", "dodger", "drab", "firebrick", "floral", "forest",
	"frosted", "gainsboro", "ghost", "goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory",
	"khaki", "lace", "lavender", "lawn", "lemon", "light", "lime", "linen", "magenta", "maroon", "medium",
	"metallic", "midnight", "mint", "misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid",
	"pale", "papaya", "peach", "peru", "pink", "plum", "powder", "puff", "purple", "red", "rose", "rosy",
	"royal", "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate", "smoke", "snow", "spring",
	"steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow"};

static const char *const segments[] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"};
static const char *const priorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"};
static const char *const ship_modes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};

static const char *const type_sizes[] = {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"};
static const char *const type_finishes[] = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"};
static const char *const type_metals[] = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};
static const char *const container_sizes[] = {"SM", "LG", "MED", "JUMBO", "WRAP"};
static const char *const container_kinds[] = {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"};

static inline void
put_part_type(Random *random)
{
	append_text(random_of_list(random, type_sizes));
	*out++ = ' ';
	append_text(random_of_list(random, type_finishes));
	*out++ = ' ';
	put_text(random_of_list(random, type_metals));
}

static inline void
put_container(Random *random)
{
	append_text(random_of_list(random, container_sizes));
	*out++ = ' ';
	put_text(random_of_list(random, container_kinds));
}

/* The country code says which nation it is. */
static inline void
put_phone(Random *random, int64_t nation)
{
	append_digits(nation + 10, 2);
	*out++ = '-';
	append_digits(random_between(random, 100, 999), 3);
	*out++ = '-';
	append_digits(random_between(random, 100, 999), 3);
	*out++ = '-';
	append_digits(random_between(random, 1000, 9999), 4);
	*out++ = '\t';
}

/* The price of a part, in cents. */
static inline int64_t
part_price(int64_t part)
{
	return 90000 + part / 10 % 20001 + 100 * (part % 1000);
}

/* Of each 32 order keys, 8 are in use. */
static inline int64_t
order_key(int64_t order)
{
	return (order >> 3 << 5) | (order & 7);
}

/* Rows at a scale factor, one at least. */
static inline int64_t
scaled(double scale, double rows)
{
	int64_t		count = (int64_t) (scale * rows + 0.5);

	return count > 0 ? count : 1;
}

/* ---- the command line -------------------------------------------------- */

#define SLICE_ROWS 10000

static inline int64_t
number_of(const char *text, int64_t least, int64_t most, const char *what)
{
	char	   *end;
	long long	number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || number < least || number > most)
	{
		fprintf(stderr, "generate: %s must be a number from %" PRId64 " to %" PRId64 "\n", what, least, most);
		exit(2);
	}
	return number;
}

/*
 * All slices of all tables, one a line, in the order in which to load them:
 * so small that processes which take one after the other are always close to
 * each other, and a table's order on disk is that of its keys but for details.
 */
static inline void
list_slices(void)
{
	for (const Table *table = tables; table->name != NULL; table++)
	{
		int64_t		slices = (*table->rows + SLICE_ROWS - 1) / SLICE_ROWS;

		slices = slices > 1000 ? 1000 : slices;
		for (int64_t slice = 1; slice <= slices; slice++)
			printf("%s %" PRId64 " %" PRId64 "\n", table->name, slice, slices);
	}
}

static inline int
generate_main(int argc, char **argv)
{
	double		scale;
	char	   *end;
	const Table *table;
	int64_t		slices;
	int64_t		slice;

	if (argc != 3 && argc != 5)
	{
		fprintf(stderr, "usage: generate TABLE SF [SLICE SLICES]    a table, or a slice from 1 on, as COPY's text\n"
				"       generate slices SF                  all slices: TABLE SLICE SLICES\n");
		return 2;
	}
	scale = strtod(argv[2], &end);
	if (end == argv[2] || *end != '\0' || !(scale >= 0.001 && scale <= 300))
	{
		fprintf(stderr, "generate: the scale factor must be from 0.001 to 300\n");
		return 2;
	}
	set_scale(scale);
	if (strcmp(argv[1], "slices") == 0)
	{
		list_slices();
		return fflush(stdout) == 0 ? 0 : 1;
	}
	for (table = tables; table->name != NULL; table++)
		if (strcmp(argv[1], table->name) == 0)
			break;
	if (table->name == NULL)
	{
		fprintf(stderr, "generate: there is no table %s\n", argv[1]);
		return 2;
	}
	slices = argc == 5 ? number_of(argv[4], 1, 1000000, "SLICES") : 1;
	slice = argc == 5 ? number_of(argv[3], 1, slices, "SLICE") : 1;

	make_days();
	make_text_pool();
	for (int64_t row = *table->rows * (slice - 1) / slices + 1; row <= *table->rows * slice / slices; row++)
		table->write(row);
	out_flush();
	return 0;
}

#endif							/* BENCH_GENERATE_H */
