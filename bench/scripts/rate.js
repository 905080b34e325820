// GETs at a rate that no user waits for.
import http from "k6/http";

export const options = {
  scenarios: {
    rate: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.USERS),
    },
  },
};

export default function () {
  http.get(`http://${__ENV.TARGET}/`);
}
