// Sockets that are opened, and held until the end.
import ws from "k6/ws";

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
  ws.connect(`ws://${__ENV.TARGET}/socket`, () => {});
}
