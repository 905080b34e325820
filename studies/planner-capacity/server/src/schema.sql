-- What the service stores. Running it again changes nothing.

DO $$ BEGIN
    CREATE TYPE compute AS ENUM ('cams', 'dbxaas');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

DO $$ BEGIN
    CREATE TYPE state AS ENUM ('waiting', 'queued', 'running', 'success', 'failed', 'disabled');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

CREATE TABLE IF NOT EXISTS dataset (
    dataset_id uuid PRIMARY KEY,
    paused boolean NOT NULL,
    extra jsonb,
    modified_by text NOT NULL,
    modified_date timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS data_product (
    dataset_id uuid NOT NULL REFERENCES dataset,
    data_product_id text NOT NULL,
    compute compute NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    eager boolean NOT NULL,
    passthrough jsonb,
    state state NOT NULL,
    run_id uuid,
    link text,
    passback jsonb,
    extra jsonb,
    modified_by text NOT NULL,
    modified_date timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, data_product_id)
);

CREATE TABLE IF NOT EXISTS dependency (
    dataset_id uuid NOT NULL REFERENCES dataset,
    parent_id text NOT NULL,
    child_id text NOT NULL,
    extra jsonb,
    modified_by text NOT NULL,
    modified_date timestamptz NOT NULL,
    PRIMARY KEY (dataset_id, parent_id, child_id),
    FOREIGN KEY (dataset_id, parent_id) REFERENCES data_product,
    FOREIGN KEY (dataset_id, child_id) REFERENCES data_product,
    CHECK (parent_id <> child_id)
);
