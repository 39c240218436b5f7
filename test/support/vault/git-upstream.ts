/** Git's HTTP server behind TLS and a password, as an upstream. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  UPSTREAM_CERT,
  UPSTREAM_KEY,
  UPSTREAM_NAME,
} from '../../actors/vault/egress/loopback-tls.js'

export interface GitUpstream {
  /** URL of an empty repository. */
  readonly repository: string
  close(): Promise<void>
}

export async function startGitUpstream(git: string, login: string): Promise<GitUpstream> {
  const root = mkdtempSync(join(tmpdir(), 'svc-git-'))
  execFileSync(git, ['init', '-q', '--bare', join(root, 'code.git')])
  execFileSync(git, ['-C', join(root, 'code.git'), 'config', 'http.receivepack', 'true'])
  const expected = `Basic ${Buffer.from(login).toString('base64')}`
  const server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (request, response) => {
    if (request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      return
    }
    const { pathname, search } = new URL(request.url!, 'https://git.example')
    const cgi = spawn(git, ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'],
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] as string | undefined,
        HTTP_GIT_PROTOCOL: request.headers['git-protocol'] as string | undefined,
        REMOTE_USER: 'agent',
      },
    })
    cgi.stdin.on('error', () => {})
    request.pipe(cgi.stdin)
    const parts: Buffer[] = []
    cgi.stdout.on('data', (part: Buffer) => parts.push(part))
    cgi.on('close', () => {
      const whole = Buffer.concat(parts)
      const end = whole.indexOf('\r\n\r\n')
      const fields = whole
        .subarray(0, end)
        .toString('latin1')
        .split('\r\n')
        .map((line) => line.split(/:\s*/, 2) as [string, string])
      const status = fields.find(([name]) => name === 'Status')?.[1] ?? '200'
      const kept = fields.filter(([name]) => name !== 'Status')
      response.writeHead(Number.parseInt(status, 10), Object.fromEntries(kept))
      response.end(whole.subarray(end + 4))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    repository: `https://${UPSTREAM_NAME}:${port}/code.git`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      rmSync(root, { recursive: true, force: true })
    },
  }
}
