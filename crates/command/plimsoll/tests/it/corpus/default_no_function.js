// exit 255
// says exports a function
export const options = { iterations: 1 };

export default 5;
