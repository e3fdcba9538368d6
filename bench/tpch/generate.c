/*-------------------------------------------------------------------------
 *
 * generate.c
 *	  The tables of TPC-H, as COPY's text: generate TABLE SF [SLICE SLICES].
 *
 *	  Columns, counts of rows, keys and distributions are those of the
 *	  specification (TPC-H 3.0, section 4.2); the random numbers and the words
 *	  of comments are our own, so that answers are not those of its reference
 *	  data.
 *
 *	  1. Orders and lineitem come from the same numbers: make_order() makes an
 *	     order with its lines, and one table writes the order, the other the lines.
 *	  2. What a row says of another table's row (the price of a part, the
 *	     suppliers of a part) is a function of its key.
 *
 *-------------------------------------------------------------------------
 */
#include "../generate.h"

enum
{
	SUPPLIER, PART, PARTSUPP, CUSTOMER, ORDERS, ORDERS_ALONE, LINEITEM, NATION, REGION
};

static int64_t supplier_rows;
static int64_t part_rows;
static int64_t customer_rows;
static int64_t order_rows;
static int64_t clerks;
static const int64_t nation_rows = lengthof(nations);
static const int64_t region_rows = lengthof(regions);

/* One of the four suppliers of a part, numbered from 0. */
static int64_t
part_supplier(int64_t part, int64_t number)
{
	return (part + number * (supplier_rows / 4 + (part - 1) / supplier_rows)) % supplier_rows + 1;
}

static void
set_scale(double scale)
{
	supplier_rows = scaled(scale, 10000);
	part_rows = scaled(scale, 200000);
	customer_rows = scaled(scale, 150000);
	order_rows = scaled(scale, 1500000);
	clerks = scaled(scale, 1000);

	/* With few suppliers, the formula may name one twice for a part. */
	for (int64_t part = 1; part <= part_rows; part += supplier_rows)
		for (int64_t number = 1; number < 4; number++)
			if (part_supplier(part, number) == part_supplier(part, 0))
			{
				fprintf(stderr, "generate: at this scale factor a part would have a supplier twice: take 0.01, or more than 0.023\n");
				exit(2);
			}
}

static void
write_region(int64_t row)
{
	Random		random = random_of(REGION, row);

	put_int(row - 1);
	put_text(regions[row - 1]);
	put_comment(&random, 31, 115);
	row_end();
}

static void
write_nation(int64_t row)
{
	Random		random = random_of(NATION, row);

	put_int(row - 1);
	put_text(nations[row - 1].name);
	put_int(nations[row - 1].region);
	put_comment(&random, 31, 114);
	row_end();
}

static void
write_part(int64_t part)
{
	Random		random = random_of(PART, part);
	int64_t		chosen[5];
	int64_t		manufacturer;

	put_int(part);
	for (int i = 0; i < 5; i++)
	{
		bool		again;

		do
		{
			again = false;
			chosen[i] = random_between(&random, 0, lengthof(colours) - 1);
			for (int j = 0; j < i; j++)
				again = again || chosen[j] == chosen[i];
		} while (again);
		if (i > 0)
			*out++ = ' ';
		append_text(colours[chosen[i]]);
	}
	*out++ = '\t';
	manufacturer = random_between(&random, 1, 5);
	append_text("Manufacturer#");
	put_int(manufacturer);
	append_text("Brand#");
	append_digits(manufacturer, 1);
	put_int(random_between(&random, 1, 5));
	put_part_type(&random);
	put_int(random_between(&random, 1, 50));
	put_container(&random);
	put_cents(part_price(part));
	put_comment(&random, 5, 22);
	row_end();
}

/*
 * Of each 2000 suppliers, one has complaints of customers in its comment, and
 * one recommendations, anywhere in it.
 */
static void
write_supplier(int64_t supplier)
{
	Random		random = random_of(SUPPLIER, supplier);
	int64_t		nation = random_between(&random, 0, nation_rows - 1);
	int64_t		length;

	put_int(supplier);
	put_numbered("Supplier#", supplier);
	put_address(&random, 10, 40);
	put_int(nation);
	put_phone(&random, nation);
	put_cents(random_between(&random, -99999, 999999));
	length = random_between(&random, 25, 100);
	if (supplier % 2000 == 57 || supplier % 2000 == 1077)
	{
		/* "Customer", "Complaints" or "Recommends", and what is left */
		int64_t		left = length - 18;
		int64_t		before = random_between(&random, 0, left);
		int64_t		between = random_between(&random, 0, left - before);

		append_comment(&random, before);
		append_text("Customer");
		append_comment(&random, between);
		append_text(supplier % 2000 == 57 ? "Complaints" : "Recommends");
		append_comment(&random, left - before - between);
	}
	else
		append_comment(&random, length);
	*out++ = '\t';
	row_end();
}

static void
write_partsupp(int64_t part)
{
	Random		random = random_of(PARTSUPP, part);

	for (int64_t number = 0; number < 4; number++)
	{
		put_int(part);
		put_int(part_supplier(part, number));
		put_int(random_between(&random, 1, 9999));
		put_cents(random_between(&random, 100, 100000));
		put_comment(&random, 49, 198);
		row_end();
	}
}

static void
write_customer(int64_t customer)
{
	Random		random = random_of(CUSTOMER, customer);
	int64_t		nation = random_between(&random, 0, nation_rows - 1);

	put_int(customer);
	put_numbered("Customer#", customer);
	put_address(&random, 10, 40);
	put_int(nation);
	put_phone(&random, nation);
	put_cents(random_between(&random, -99999, 999999));
	put_text(random_of_list(&random, segments));
	put_comment(&random, 29, 116);
	row_end();
}

/* ---- orders and their lines -------------------------------------------- */

#define CURRENT_DAY 1263		/* 1995-06-17 */

typedef struct Line
{
	int64_t		part;
	int64_t		supplier;
	int64_t		quantity;
	int64_t		price;			/* cents */
	int64_t		discount;		/* percent */
	int64_t		tax;			/* percent */
	int64_t		ship_day;
	int64_t		commit_day;
	int64_t		receipt_day;
} Line;

typedef struct Order
{
	int64_t		day;
	int64_t		total;			/* cents */
	int			lines;
	int			shipped;		/* lines */
	Line		line[7];
} Order;

static void
make_order(int64_t number, Order *order)
{
	Random		random = random_of(ORDERS, number);

	order->day = random_between(&random, 0, LAST_ORDER_DAY);
	order->lines = (int) random_between(&random, 1, 7);
	order->total = 0;
	order->shipped = 0;
	for (int i = 0; i < order->lines; i++)
	{
		Line	   *line = &order->line[i];

		line->part = random_between(&random, 1, part_rows);
		line->supplier = part_supplier(line->part, random_between(&random, 0, 3));
		line->quantity = random_between(&random, 1, 50);
		line->price = line->quantity * part_price(line->part);
		line->discount = random_between(&random, 0, 10);
		line->tax = random_between(&random, 0, 8);
		line->ship_day = order->day + random_between(&random, 1, 121);
		line->commit_day = order->day + random_between(&random, 30, 90);
		line->receipt_day = line->ship_day + random_between(&random, 1, 30);
		order->total += line->price * (100 - line->discount) / 100 * (100 + line->tax) / 100;
		order->shipped += line->ship_day <= CURRENT_DAY;
	}
}

static void
write_order(int64_t number)
{
	Random		random = random_of(ORDERS_ALONE, number);
	Order		order;
	int64_t		customer;

	make_order(number, &order);
	/* A third of the customers, those divisible by three, never order. */
	customer = random_between(&random, 0, customer_rows - customer_rows / 3 - 1);
	put_int(order_key(number));
	put_int(customer / 2 * 3 + customer % 2 + 1);
	put_char(order.shipped == order.lines ? 'F' : order.shipped == 0 ? 'O' : 'P');
	put_cents(order.total);
	put_date(order.day);
	put_text(random_of_list(&random, priorities));
	put_numbered("Clerk#", random_between(&random, 1, clerks));
	put_int(0);
	put_comment(&random, 19, 78);
	row_end();
}

static void
write_lines(int64_t number)
{
	static const char *const instructions[] = {"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"};
	Random		random = random_of(LINEITEM, number);
	Order		order;

	make_order(number, &order);
	for (int i = 0; i < order.lines; i++)
	{
		const Line *line = &order.line[i];

		put_int(order_key(number));
		put_int(line->part);
		put_int(line->supplier);
		put_int(i + 1);
		put_int(line->quantity);
		put_cents(line->price);
		put_cents(line->discount);
		put_cents(line->tax);
		put_char(line->receipt_day > CURRENT_DAY ? 'N' : random_between(&random, 0, 1) ? 'R' : 'A');
		put_char(line->ship_day > CURRENT_DAY ? 'O' : 'F');
		put_date(line->ship_day);
		put_date(line->commit_day);
		put_date(line->receipt_day);
		put_text(random_of_list(&random, instructions));
		put_text(random_of_list(&random, ship_modes));
		put_comment(&random, 10, 43);
		row_end();
	}
}

/* The large ones first, so that processes that load them end together. */
static const Table tables[] = {
	{"lineitem", &order_rows, write_lines},
	{"orders", &order_rows, write_order},
	{"partsupp", &part_rows, write_partsupp},
	{"part", &part_rows, write_part},
	{"customer", &customer_rows, write_customer},
	{"supplier", &supplier_rows, write_supplier},
	{"nation", &nation_rows, write_nation},
	{"region", &region_rows, write_region},
	{NULL, NULL, NULL}
};

int
main(int argc, char **argv)
{
	return generate_main(argc, argv);
}
