import { name } from './deeper/name.js';
export const add = (a, b) => a + b;
export { name };
export default 'default of add';
