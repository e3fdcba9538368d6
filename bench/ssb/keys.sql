-- Keys of the Star Schema Benchmark's tables.
ALTER TABLE lineorder ADD PRIMARY KEY (lo_orderkey, lo_linenumber);
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE date ADD PRIMARY KEY (d_datekey);

ALTER TABLE lineorder ADD FOREIGN KEY (lo_custkey) REFERENCES customer;
ALTER TABLE lineorder ADD FOREIGN KEY (lo_partkey) REFERENCES part;
ALTER TABLE lineorder ADD FOREIGN KEY (lo_suppkey) REFERENCES supplier;
ALTER TABLE lineorder ADD FOREIGN KEY (lo_orderdate) REFERENCES date;
ALTER TABLE lineorder ADD FOREIGN KEY (lo_commitdate) REFERENCES date;
