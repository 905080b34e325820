export enum Method { Get, Post, 'del' = 5, Last = Post + del }

abstract class Named {
  constructor(protected readonly name: string) {}
}

export class Plan extends Named {
  constructor(private method: Method, public readonly path: string, private body = '') {
    super('plan');
  }

  run(http: any): void {
    http.request(Method[this.method].toUpperCase(), `${__ENV.URL}/${this.path}`, this.body || null);
  }
}
declare const __ENV: { [name: string]: string };
