// exit 107
// says typescript_place.ts:6:31
// What is put into a line moves nothing of it.
class Held { constructor(private readonly held: string) {} }
export default function (): void { new Held(''); }
enum Late { Never } throw new Error('late');
