-- 300 plans: one for each of the users in plans.csv, and what the search of the service looks through.

INSERT INTO dataset (dataset_id, paused, extra, modified_by, modified_date)
SELECT md5('plan ' || number)::uuid, false, '{"company": "Example", "year": 2025}', 'load', now()
FROM generate_series(1, 300) AS number;

INSERT INTO data_product (dataset_id, data_product_id, compute, name, version, eager, state, modified_by, modified_date)
SELECT md5('plan ' || number)::uuid, id, compute::compute, name, '1.0.0', eager, 'waiting', 'load', now()
FROM generate_series(1, 300) AS number,
    (VALUES
        ('BKPF', 'cams', 'Headers of accounting documents', false),
        ('BSEG', 'cams', 'Lines of accounting documents', false),
        ('T001', 'cams', 'Company codes', false),
        ('GLT0', 'cams', 'Totals of the general ledger', false),
        ('EDM_GL', 'dbxaas', 'General ledger', true),
        ('EDM_TB', 'dbxaas', 'Trial balance', true),
        ('Alchemy', 'dbxaas', 'Ledger and balance, reconciled', true),
        ('FSLI', 'cams', 'Lines of the financial statement', false),
        ('MIDA', 'cams', 'Mapping of accounts', true),
        ('Journals 1000', 'dbxaas', 'Journals of company 1000', true),
        ('Journals 2000', 'dbxaas', 'Journals of company 2000', false)
    ) AS product (id, compute, name, eager);

INSERT INTO dependency (dataset_id, parent_id, child_id, modified_by, modified_date)
SELECT md5('plan ' || number)::uuid, parent, child, 'load', now()
FROM generate_series(1, 300) AS number,
    (VALUES
        ('BKPF', 'EDM_GL'),
        ('BSEG', 'EDM_GL'),
        ('T001', 'EDM_GL'),
        ('BSEG', 'EDM_TB'),
        ('T001', 'EDM_TB'),
        ('GLT0', 'EDM_TB'),
        ('EDM_GL', 'Alchemy'),
        ('EDM_TB', 'Alchemy'),
        ('EDM_GL', 'Journals 1000'),
        ('EDM_TB', 'Journals 1000'),
        ('FSLI', 'Journals 1000'),
        ('MIDA', 'Journals 1000'),
        ('EDM_GL', 'Journals 2000'),
        ('EDM_TB', 'Journals 2000'),
        ('FSLI', 'Journals 2000'),
        ('MIDA', 'Journals 2000')
    ) AS dependency (parent, child);

ANALYZE;
