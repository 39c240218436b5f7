/** Requests whose answers are bytes. */
import { request } from 'undici'
import type { TestService } from '../service.js'

export async function raw(
  { baseUrl }: Pick<TestService, 'baseUrl'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: Readonly<Record<string, unknown>>; body: Buffer }> {
  const answer = await request(new URL(path, baseUrl), { headers })
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: Buffer.from(await answer.body.arrayBuffer()),
  }
}
