// exit 0
// requests 1
import http from 'k6/http';
import { describe, Shape } from './lib/typed.ts';
export const options: { iterations: number } = { iterations: 1 };
export default function (): void {
  const square: Shape = { sides: 4, name: 'square' };
  http.get(`${__ENV.URL}/${describe(square)!}`);
}
