-- Tables as people have them: a shop, visits to a site, a company.  :scale is of 2,000,000 rows in
-- each of the largest tables.  Some columns that refer to another table have an index, and some have none.
SELECT (2000000 * :scale)::int AS n, (100000 * :scale)::int AS few \gset
DROP TABLE IF EXISTS customers, orders, products, lines, prices, blocked, users, sessions, events, departments, employees CASCADE;
CREATE TABLE customers (id int PRIMARY KEY, email text, phone text, country int, credit numeric(10,2), referrer int, signup date NOT NULL);
INSERT INTO customers SELECT g, 'c' || g || '@example.org', CASE WHEN g % 7 > 0 THEN '+49' || g END, g % 60, g % 9000, nullif(g / 20, 0),
	date '2020-01-01' + g % 1500 FROM generate_series(1, :few) g;
CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL, placed timestamp NOT NULL, total numeric(10,2), status text NOT NULL, coupon int);
INSERT INTO orders SELECT g, (g::bigint * 7919 % :few * (g % 3) / 2)::int + 1, timestamp '2023-01-01' + g * interval '30 s', g * 13 % 9973,
	(ARRAY['paid', 'sent', 'open', 'returned'])[1 + g * 7 % 4], CASE WHEN g % 9 = 0 THEN g % 1000 END FROM generate_series(1, :n) g;
CREATE INDEX ON orders (customer_id);
CREATE TABLE products (id int PRIMARY KEY, category int NOT NULL, price numeric(10,2), name text);
INSERT INTO products SELECT g, g % 200, g % 490 + 0.99, 'product ' || g FROM generate_series(1, :few / 5) g;
CREATE TABLE lines (order_id int NOT NULL, line int NOT NULL, product_id int NOT NULL, quantity int NOT NULL, price numeric(10,2), PRIMARY KEY (order_id, line));
INSERT INTO lines SELECT g / 2 + 1, g % 2, (g::bigint * 31 % (:few / 5))::int + 1, g % 12 + 1, g % 490 FROM generate_series(1, :n) g;
CREATE TABLE prices (product_id int, since date, price numeric(10,2), PRIMARY KEY (product_id, since));
INSERT INTO prices SELECT p, date '2023-01-01' + 20 * d, p % 490 + d FROM generate_series(1, :few / 5) p, generate_series(0, 9) d;
CREATE TABLE blocked (email text, customer_id int);
INSERT INTO blocked SELECT CASE WHEN g % 50 > 0 THEN 'c' || g * 5 || '@example.org' END, CASE WHEN g % 60 > 0 THEN g * 7 END FROM generate_series(1, :few / 10) g;
CREATE TABLE users (id int PRIMARY KEY, name text, team int, joined timestamp NOT NULL);
INSERT INTO users SELECT g, 'user ' || g, g % 900, timestamp '2023-01-01' + g * interval '3 min' FROM generate_series(1, :few / 2) g;
CREATE TABLE sessions (id int PRIMARY KEY, user_id int NOT NULL, started timestamp NOT NULL, device text);
INSERT INTO sessions SELECT g, (g::bigint * 101 % (:few / 2))::int + 1, timestamp '2023-06-01' + g * interval '1 min', 'device ' || g % 5 FROM generate_series(1, :n / 4) g;
CREATE TABLE events (id int PRIMARY KEY, session_id int NOT NULL, user_id int NOT NULL, at timestamp NOT NULL, kind text NOT NULL, value int);
INSERT INTO events SELECT g, g / 4 + 1, (g::bigint / 4 * 101 % (:few / 2))::int + 1, timestamp '2023-06-01' + g * interval '15 s',
	(ARRAY['view', 'click', 'buy', 'view', 'leave'])[1 + g % 5], CASE WHEN g % 11 > 0 THEN g % 100 END FROM generate_series(1, :n) g;
CREATE INDEX ON events (user_id, at);
CREATE TABLE departments (id int PRIMARY KEY, name text, head int);
INSERT INTO departments SELECT g, 'department ' || g, g * 37 FROM generate_series(1, 500) g;
CREATE TABLE employees (id int PRIMARY KEY, department int NOT NULL, boss int, salary numeric(10,2), grade int, hired date NOT NULL);
INSERT INTO employees SELECT g, g % 500 + 1, nullif(g / 10, 0), 2000 + g * 7 % 5000, g % 12, date '2010-01-01' + g % 4000 FROM generate_series(1, :few) g;
VACUUM (FREEZE, ANALYZE);
