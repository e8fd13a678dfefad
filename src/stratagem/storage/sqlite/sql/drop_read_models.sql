-- Everything that read_models.sql creates; vectors are set aside, to be adopted afterwards.

DROP TABLE IF EXISTS branches;
DROP TABLE IF EXISTS versions;
DROP TABLE IF EXISTS tallies;
DROP TABLE IF EXISTS knows;
DROP TABLE IF EXISTS tags;
DROP TABLE IF EXISTS links;
DROP TABLE IF EXISTS numbers;
DROP TABLE IF EXISTS turns;
DROP TABLE IF EXISTS terms;
DROP TABLE IF EXISTS texts;
ALTER TABLE vectors RENAME TO kept_vectors;
DROP TABLE IF EXISTS unindexed;
DROP TABLE IF EXISTS unembedded;
