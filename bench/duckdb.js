// What bench/duckdb.sh runs in DuckDB: loads the tables, times the queries, compares the
// answers with PostgreSQL's, and prints times and ratios beside bench/real.pl's.
//
//   node bench/duckdb.js tpch|ssb FOLDER     FOLDER has a file TABLE.csv for each table
//
// An answer is right if its rows are stock's, in its order or, where ORDER BY leaves it
// open, in another.  A value is the same if the strings are, or the numbers to the last
// digit.  Where DuckDB's type is DOUBLE and PostgreSQL's is numeric (averages and
// quotients), ten digits must be the same; those queries are marked.
'use strict';
const fs = require('fs');
const { DuckDBInstance } = require('@duckdb/node-api');

const [name, folder] = process.argv.slice(2);
const runs = Number(process.env.RUNS || 3);
const threads = (process.env.THREADS || '1 2').split(/\s+/).filter(Boolean).map(Number);
const wanted = (process.env.QUERIES || '').split(/\s+/).filter(Boolean);
const fraction = (0.0001 / Number(process.env.SF || 1)).toFixed(10);
const queries = wanted.length ? wanted :
	fs.readdirSync(`bench/${name}/queries`).filter((f) => f.endsWith('.sql')).map((f) => f.slice(0, -4)).sort();

const median = (times) => {
	const sorted = [...times].sort((a, b) => a - b);
	const half = Math.floor(sorted.length / 2);
	return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// PostgreSQL's medians: workers, query and mode -> ms.
function postgresTimes()
{
	const times = new Map();
	for (const line of fs.readFileSync(`build/bench/${name}.tsv`, 'utf8').split('\n').slice(1)) {
		const [query, workers, mode, state, ms] = line.split('\t');
		if (state === 'ok')
			times.set(`${workers} ${query} ${mode}`, Number(ms));
	}
	return times;
}

async function load(connection)
{
	// types as in PostgreSQL; keys are not declared
	for (const statement of fs.readFileSync(`bench/${name}/tables.sql`, 'utf8').replace(/^--.*$/gm, '').split(';'))
		if (statement.trim())
			await connection.run(statement);
	for (const file of fs.readdirSync(folder)) {
		const table = file.replace(/\.csv$/, '');
		await connection.run(`COPY ${table} FROM '${folder}/${file}' (FORMAT csv, HEADER)`);
	}
}

// ---- answers

// A number without what does not change it: signs of zero, zeros at the ends.
function plainNumber(text)
{
	const match = /^(-?)0*(\d*?)(?:\.(\d*?)0*)?$/.exec(text);
	if (!match || text === '' || text === '-')
		return null;
	const digits = (match[2] || '0') + (match[3] ? `.${match[3]}` : '');
	return digits === '0' ? '0' : match[1] + digits;
}

function sameValue(theirs, ours, type)
{
	const a = theirs === null ? '' : String(theirs).trimEnd();
	const b = ours.trimEnd();
	if (a === b)
		return true;
	if (type === 'DOUBLE' || type === 'FLOAT')
		return b !== '' && Math.abs(Number(a) - Number(b)) <= 1e-10 * Math.max(Math.abs(Number(a)), Math.abs(Number(b)));
	const x = plainNumber(a);
	return x !== null && x === plainNumber(b);
}

// By what is the same in both, so that rows of another order come together.
function sortKey(row, types)
{
	return row.map((value, i) => {
		const text = value === null ? '' : String(value).trimEnd();
		return types[i] === 'DOUBLE' ? Number(text).toPrecision(8) : plainNumber(text) ?? text;
	}).join('|');
}

function sameAnswer(rows, types, expected)
{
	const lines = expected.split('\n').filter((line, i, all) => i < all.length - 1 || line !== '').map((line) => line.split('|'));
	const equal = (a, b) => a.length === b.length && a.every((row, r) =>
		row.length === b[r].length && row.every((value, i) => sameValue(value, b[r][i], types[i])));
	if (rows.length !== lines.length)
		return false;
	const sorted = (all) => [...all].sort((a, b) => (sortKey(a, types) < sortKey(b, types) ? -1 : 1));
	return equal(rows, lines) || equal(sorted(rows), sorted(lines));
}

// ---- all of it

const shown = (value, width, digits) => (value === undefined ? '-' : value.toFixed(digits)).padStart(width);
const ratio = (a, b) => (a === undefined || b === undefined ? undefined : a / b);

function printTable(n, workers, times, results)
{
	const logs = { ours: [], duckdb: [], between: [] };
	console.log(`\n${n === 1 ? 'One thread, no parallel workers' : `${n} threads, up to ${workers} workers`}\n`);
	console.log(`${''.padEnd(6)}${['', '', '', 'ours ÷', 'DuckDB ÷', 'ours ÷'].map((s) => s.padStart(10)).join('')}`);
	console.log(`${'query'.padEnd(6)}${['stock', 'ours', 'DuckDB', 'stock', 'stock', 'DuckDB'].map((s) => s.padStart(10)).join('')}`);
	for (const query of queries) {
		const stock = times.get(`${workers} ${query} stock`);
		const ours = times.get(`${workers} ${query} chosen`);
		const duckdb = results[query].median;
		const of = { ours: ratio(ours, stock), duckdb: ratio(duckdb, stock), between: ratio(ours, duckdb) };
		if (Object.values(of).every((value) => value !== undefined))
			for (const key of Object.keys(of))
				logs[key].push(Math.log(of[key]));
		console.log(query.padEnd(6) + shown(stock, 10, 1) + shown(ours, 10, 1) + shown(duckdb, 10, 1) +
			shown(of.ours, 10, 2) + shown(of.duckdb, 10, 2) + shown(of.between, 10, 2) + (results[query].doubles ? '  ~' : ''));
		if (results[query].wrong)
			console.log(`      ${results[query].wrong}`);
	}
	const mean = (all) => (all.length ? Math.exp(all.reduce((a, b) => a + b, 0) / all.length) : undefined);
	console.log(`${'mean'.padEnd(6)}${''.padStart(30)}${shown(mean(logs.ours), 10, 3)}${shown(mean(logs.duckdb), 10, 3)}${shown(mean(logs.between), 10, 3)}`);
}

// One query: times, and whether the answer is stock's.
async function measure(connection, query, workers)
{
	const sql = fs.readFileSync(`bench/${name}/queries/${query}.sql`, 'utf8').replaceAll(':fraction', fraction);
	const file = `build/bench/${name}/${query}.${workers}.stock.1`;
	const result = { ms: [] };
	try {
		for (let run = 0; run <= runs; run++) {
			const begun = process.hrtime.bigint();
			const reader = await connection.runAndReadAll(sql);
			const ms = Number(process.hrtime.bigint() - begun) / 1e6;
			if (run > 0)			// the first one is for warmth
				result.ms.push(ms);
			else {
				const types = reader.columnTypes().map(String);
				result.doubles = types.some((type) => type === 'DOUBLE');
				if (!fs.existsSync(file))
					result.wrong = 'no answer of stock to compare with';
				else if (!sameAnswer(reader.getRowsJson(), types, fs.readFileSync(file, 'utf8')))
					result.wrong = `ANOTHER ANSWER than that of stock: see ${file}`;
			}
		}
		result.median = median(result.ms);
	} catch (error) {
		result.wrong = `failed: ${error.message}`;
	}
	return result;
}

async function main()
{
	const instance = await DuckDBInstance.create(':memory:');
	const connection = await instance.connect();
	const times = postgresTimes();
	const tsv = [['query', 'threads', 'median_ms', 'runs_ms', 'wrong'].join('\t')];
	let wrong = false;

	await load(connection);
	const version = (await connection.runAndReadAll('SELECT version()')).getRowsJson()[0][0];
	console.log(`DuckDB ${version}, in memory, beside stock and ours: medians of ${runs} runs in ms`);
	for (const n of threads) {
		const workers = n === 1 ? 0 : n;
		const results = {};
		await connection.run(`SET threads = ${n}`);
		for (const query of queries) {
			const result = results[query] = await measure(connection, query, workers);
			wrong ||= result.wrong !== undefined;
			tsv.push([query, n, result.median ?? '', result.ms.map((ms) => ms.toFixed(3)).join(' '), result.wrong ?? ''].join('\t'));
		}
		printTable(n, workers, times, results);
	}
	fs.writeFileSync(`build/bench/${name}-duckdb.tsv`, tsv.join('\n') + '\n');
	console.log('\nmean: geometric, of the queries that all three have ended; ~: DuckDB computes averages or quotients of');
	console.log('numerics as DOUBLE, of which ten digits are compared; all else is compared to the last digit');
	console.log(`All figures: build/bench/${name}-duckdb.tsv.${wrong ? ' Wrong answers or errors: see above.' : ''}`);
	process.exitCode = wrong ? 1 : 0;
}

main().catch((error) => {
	console.error(`bench: ${error.message}`);
	process.exitCode = 1;
});
