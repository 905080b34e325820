// exit 0
// prints metrics,options,root_group,setup_data,state; null; object
// What there is also where the script has no setup, and by the name that Node.js has for it.
export default function () {}
export function handleSummary(data) {
  return { stdout: `${Object.keys(data).sort()}; ${data.setup_data}; ${typeof global}\n` };
}
