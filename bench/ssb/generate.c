/*-------------------------------------------------------------------------
 *
 * generate.c
 *	  The tables of the Star Schema Benchmark, as COPY's text:
 *	  generate TABLE SF [SLICE SLICES].
 *
 *	  Columns, counts of rows and distributions are those of O'Neil, O'Neil
 *	  and Chen's specification (revision 3), money in whole cents; the random
 *	  numbers are our own.
 *
 *	  1. A row of lineorder's numbering is an order, with 1 to 7 lines.
 *	  2. A calendar of all days of 1992 to 1998 is the table "date".
 *	  3. Beyond scale factor 1 parts grow with its logarithm; below, they
 *	     shrink as everything else does.
 *
 *-------------------------------------------------------------------------
 */
#include "../generate.h"

enum
{
	CUSTOMER = 100, SUPPLIER, PART, LINEORDER
};

static int64_t customer_rows;
static int64_t supplier_rows;
static int64_t part_rows;
static int64_t order_rows;
static const int64_t date_rows = DAYS;

static void
set_scale(double scale)
{
	double		rest = scale;
	double		logarithm = 0;

	customer_rows = scaled(scale, 30000);
	supplier_rows = scaled(scale, 2000);
	order_rows = scaled(scale, 1500000);

	/* 1 + log2(scale), between powers of two along a line */
	for (; rest >= 2; rest /= 2)
		logarithm += 1;
	part_rows = scaled(scale < 1 ? scale : 1 + logarithm + (rest - 1), 200000);
}

/* The first nine characters of the nation, and a digit. */
static void
put_city(int64_t nation, int64_t number)
{
	const char *name = nations[nation].name;
	int			length = (int) strlen(name);

	for (int i = 0; i < 9; i++)
		*out++ = i < length ? name[i] : ' ';
	put_int(number);
}

/* What customers and suppliers have in common. */
static void
put_place(Random *random)
{
	int64_t		nation = random_between(random, 0, lengthof(nations) - 1);

	put_address(random, 10, 25);
	put_city(nation, random_between(random, 0, 9));
	put_text(nations[nation].name);
	put_text(regions[nations[nation].region]);
	put_phone(random, nation);
}

static void
write_customer(int64_t customer)
{
	Random		random = random_of(CUSTOMER, customer);

	put_int(customer);
	put_numbered("Customer#", customer);
	put_place(&random);
	put_text(random_of_list(&random, segments));
	row_end();
}

static void
write_supplier(int64_t supplier)
{
	Random		random = random_of(SUPPLIER, supplier);

	put_int(supplier);
	put_numbered("Supplier#", supplier);
	put_place(&random);
	row_end();
}

static void
write_part(int64_t part)
{
	Random		random = random_of(PART, part);
	const char *colour = random_of_list(&random, colours);
	const char *another = random_of_list(&random, colours);
	int64_t		manufacturer = random_between(&random, 1, 5);
	int64_t		category = manufacturer * 10 + random_between(&random, 1, 5);

	put_int(part);
	append_text(colour);
	*out++ = ' ';
	put_text(another);
	append_text("MFGR#");
	put_int(manufacturer);
	append_text("MFGR#");
	put_int(category);
	append_text("MFGR#");
	append_digits(category, 2);
	put_int(random_between(&random, 1, 40));
	put_text(colour);
	put_part_type(&random);
	put_int(random_between(&random, 1, 50));
	put_container(&random);
	row_end();
}

/* ---- dates ------------------------------------------------------------- */

static int64_t
date_key(int64_t number)
{
	const Day  *day = &days[number];

	return day->year * 10000 + day->month * 100 + day->day;
}

static const char *
season(const Day *day)
{
	if (day->month == 12 || (day->month == 11 && day->day > 15))
		return "Christmas";
	if (day->month >= 9)
		return "Fall";
	if (day->month >= 6)
		return "Summer";
	if (day->month >= 3)
		return "Spring";
	return "Winter";
}

static bool
holiday(const Day *day)
{
	static const int dates[] = {101, 220, 420, 520, 704, 905, 1125, 1225};

	for (int i = 0; i < lengthof(dates); i++)
		if (day->month * 100 + day->day == dates[i])
			return true;
	return false;
}

static void
write_date(int64_t row)
{
	static const char *const weekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
	static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August",
	"September", "October", "November", "December"};
	const Day  *day = &days[row - 1];
	const char *month = months[day->month - 1];
	int64_t		weekday = (row - 1 + 3) % 7;	/* 1992 began on a Wednesday */

	put_int(date_key(row - 1));
	append_text(month);
	*out++ = ' ';
	append_digits(day->day, 1);
	append_text(", ");
	put_int(day->year);
	put_text(weekdays[weekday]);
	put_text(month);
	put_int(day->year);
	put_int(day->year * 100 + day->month);
	memcpy(out, month, 3);
	out += 3;
	put_int(day->year);
	put_int(weekday + 1);
	put_int(day->day);
	put_int(day->of_year);
	put_int(day->month);
	put_int((day->of_year - 1) / 7 + 1);
	put_text(season(day));
	put_int(weekday == 6);
	put_int(day->last_of_month);
	put_int(holiday(day));
	put_int(weekday >= 1 && weekday <= 5);
	row_end();
}

/* ---- orders ------------------------------------------------------------ */

typedef struct Line
{
	int64_t		part;
	int64_t		supplier;
	int64_t		quantity;
	int64_t		price;
	int64_t		discount;
	int64_t		tax;
	int64_t		commit_day;
	const char *ship_mode;
} Line;

static void
write_lines(int64_t number)
{
	Random		random = random_of(LINEORDER, number);
	int64_t		customer = random_between(&random, 1, customer_rows);
	int64_t		day = random_between(&random, 0, LAST_ORDER_DAY);
	const char *priority = random_of_list(&random, priorities);
	int			lines = (int) random_between(&random, 1, 7);
	int64_t		total = 0;
	Line		line[7];

	for (int i = 0; i < lines; i++)
	{
		line[i].part = random_between(&random, 1, part_rows);
		line[i].supplier = random_between(&random, 1, supplier_rows);
		line[i].quantity = random_between(&random, 1, 50);
		line[i].price = line[i].quantity * part_price(line[i].part);
		line[i].discount = random_between(&random, 0, 10);
		line[i].tax = random_between(&random, 0, 8);
		line[i].commit_day = day + random_between(&random, 30, 90);
		line[i].ship_mode = random_of_list(&random, ship_modes);
		total += line[i].price * (100 - line[i].discount) / 100 * (100 + line[i].tax) / 100;
	}
	for (int i = 0; i < lines; i++)
	{
		put_int(order_key(number));
		put_int(i + 1);
		put_int(customer);
		put_int(line[i].part);
		put_int(line[i].supplier);
		put_int(date_key(day));
		put_text(priority);
		put_char('0');
		put_int(line[i].quantity);
		put_int(line[i].price);
		put_int(total);
		put_int(line[i].discount);
		put_int(line[i].price * (100 - line[i].discount) / 100);
		put_int(part_price(line[i].part) * 6 / 10);
		put_int(line[i].tax);
		put_int(date_key(line[i].commit_day));
		put_text(line[i].ship_mode);
		row_end();
	}
}

/* The large ones first, so that processes that load them end together. */
static const Table tables[] = {
	{"lineorder", &order_rows, write_lines},
	{"part", &part_rows, write_part},
	{"customer", &customer_rows, write_customer},
	{"supplier", &supplier_rows, write_supplier},
	{"date", &date_rows, write_date},
	{NULL, NULL, NULL}
};

int
main(int argc, char **argv)
{
	return generate_main(argc, argv);
}
