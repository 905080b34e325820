export const name = JSON.parse(open('./data.json')).name;
