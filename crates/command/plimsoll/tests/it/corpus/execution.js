// exit 0
// checks 12 of 12
import { check } from 'k6';
import exec, { vu } from 'k6/execution';
export const options = { scenarios: { only: { executor: 'per-vu-iterations', vus: 1, iterations: 2, tags: { of: 'scenario' } } } };
export default function () {
  if (__ITER === 0) exec.vu.tags['mine'] = 5;
  if (__ITER < 1) return;
  check(exec, {
    'scenario.name': (e) => e.scenario.name === 'only',
    'scenario.executor': (e) => e.scenario.executor === 'per-vu-iterations',
    'scenario.iterationInTest': (e) => e.scenario.iterationInTest === 1 && e.scenario.iterationInInstance === 1,
    'scenario.progress': (e) => e.scenario.progress >= 0.5 && e.scenario.progress <= 1,
    'scenario.startTime': (e) => Math.abs(Date.now() - e.scenario.startTime) < 60000,
    'vu.id': (e) => e.vu.idInTest === 1 && e.vu.idInInstance === 1,
    'vu.iteration': () => vu.iterationInInstance === 1 && vu.iterationInScenario === 1,
    'vu.tags': (e) => e.vu.tags.mine === '5' && e.vu.tags.scenario === 'only' && e.vu.tags.of === 'scenario',
    'instance.vus': (e) => e.instance.vusActive === 1 && e.instance.vusInitialized === 1,
    'instance.iterations': (e) => e.instance.iterationsCompleted === 1 && e.instance.iterationsInterrupted === 0,
    'instance.time': (e) => e.instance.currentTestRunDuration > 0,
    'test.options': (e) => e.test.options.scenarios.only.vus === 1,
  });
}
