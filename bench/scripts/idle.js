// One GET, and an hour of doing nothing; whoever still sleeps at the end is ended at once.
import http from "k6/http";
import { sleep } from "k6";

export const options = {
  scenarios: {
    idle: {
      executor: "constant-vus",
      vus: Number(__ENV.USERS),
      duration: `${__ENV.SECONDS}s`,
      gracefulStop: "0s",
    },
  },
};

export default function () {
  http.get(`http://${__ENV.TARGET}/`);
  sleep(3600);
}
