// exit 0
// checks 4 of 4
import { check } from 'k6';
import grpc, { Client, HealthCheckServing } from 'k6/net/grpc';
const client = new Client();
export const options = { thresholds: { grpc_req_duration: ['max>0'] } };
export default function () {
  client.connect(__ENV.CALLS, { plaintext: true });
  check(client.healthCheck('talk.Talk'), { 'of a service': (r) => r.status === HealthCheckServing });
  check(client.healthCheck(), { 'of the server': (r) => r.status === grpc.HealthCheckServing });
  let thrown;
  try { client.healthCheck('nobody'); } catch (error) { thrown = error; }
  check(thrown, { 'of none': (error) => error.message.includes('unknown service') });
  check(client, { 'there is no other': (it) => it.asyncHealthCheck === undefined });
  client.close();
}
