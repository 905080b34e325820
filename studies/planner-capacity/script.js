// A user of the busiest day, as `busiest-day.toml` has it: makes a plan and carries it through.
//
// TARGET: the planner, as http://127.0.0.1:3000. LEAST, MOST: the bounds of a pause, WORK: how long a product takes to make,
// in seconds.
import { check, sleep } from 'k6';
import http from 'k6/http';

const [LEAST, MOST, WORK] = ['LEAST', 'MOST', 'WORK'].map((name) => Number(__ENV[name]));

// Name, where it is computed, what it is, and whether it is made as soon as all that it takes is there.
const PRODUCTS = [
  ['BKPF', 'cams', 'Headers of accounting documents', false],
  ['BSEG', 'cams', 'Lines of accounting documents', false],
  ['T001', 'cams', 'Company codes', false],
  ['GLT0', 'cams', 'Totals of the general ledger', false],
  ['EDM_GL', 'dbxaas', 'General ledger', true],
  ['EDM_TB', 'dbxaas', 'Trial balance', true],
  ['Alchemy', 'dbxaas', 'Ledger and balance, reconciled', true],
  ['FSLI', 'cams', 'Lines of the financial statement', false],
  ['MIDA', 'cams', 'Mapping of accounts', true],
  ['Journals 1000', 'dbxaas', 'Journals of company 1000', true],
  ['Journals 2000', 'dbxaas', 'Journals of company 2000', false],
];

// What each is made of.
const PARENTS = {
  EDM_GL: ['BKPF', 'BSEG', 'T001'],
  EDM_TB: ['BSEG', 'T001', 'GLT0'],
  Alchemy: ['EDM_GL', 'EDM_TB'],
  'Journals 1000': ['EDM_GL', 'EDM_TB', 'FSLI', 'MIDA'],
  'Journals 2000': ['EDM_GL', 'EDM_TB', 'FSLI', 'MIDA'],
};

function pause() {
  sleep(LEAST + Math.random() * (MOST - LEAST));
}

function plan(id) {
  return {
    dataset: { id, paused: false, extra: { company: 'Example', year: 2025 } },
    data_products: PRODUCTS.map(([id, compute, name, eager]) => ({ id, compute, name, version: '1.0.0', eager })),
    dependencies: Object.entries(PARENTS).flatMap(([child_id, parents]) =>
      parents.map((parent_id) => ({ parent_id, child_id })),
    ),
  };
}

function send(method, path, body, name, token) {
  const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) };
  const reply = http.request(method, `${__ENV.TARGET}${path}`, JSON.stringify(body), { headers, tags: { name } });
  check(reply, { 'status is 200': () => reply.status === 200 });
  return reply.json();
}

function look(id) {
  http.get(`${__ENV.TARGET}/`, { tags: { name: 'index' } });
  pause();
  http.get(`${__ENV.TARGET}/component/plan_search?search_by=${id}`, { tags: { name: 'search' } });
  pause();
  http.get(`${__ENV.TARGET}/plan/${id}`, { tags: { name: 'plan' } });
}

export default function () {
  const id = `00000000-0000-4000-8000-${String(__VU).padStart(6, '0')}${String(__ITER).padStart(6, '0')}`;
  const token = send('POST', '/api/authenticate', { service: 'local', key: 'abc123' }, 'log in').access_token;
  let now = send('POST', '/api/plan', plan(id), 'make a plan', token);
  while (!now.done) {
    pause();
    if (Math.random() < 0.2) {
      look(id);
      continue;
    }
    const next = now.next[Math.floor(Math.random() * now.next.length)];
    now = send('PUT', `/api/data_product/${id}/update`, [next], 'update', token);
    if (next.state === 'running') {
      sleep(WORK);
    }
  }
}
