/** The measured relays and their upstream, each in its own process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOCALHOST_CERT } from '../flows/loopback-tls.js'
import { freePort, type Spent, spentBy } from '../foreign-program.js'
import { pinned } from '../wrk.js'
import type { Listening } from './servers.js'

export interface Relay extends Listening {
  spent(): Promise<Spent>
  stop(): Promise<void>
}

export async function startServer(core: 0 | 1, ...args: readonly string[]): Promise<Relay> {
  const file = new URL('./servers.js', import.meta.url).pathname
  const [command, ...words] = [...pinned(core), process.execPath, file, ...args]
  const child = spawn(command!, words, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const [listening] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([status]) => {
      throw new Error(`${args[0]} ended with ${status} before it listened`)
    }),
  ])) as [Listening]
  return {
    ...listening,
    async spent() {
      const answer = once(child, 'message')
      child.send({})
      return ((await answer) as [Spent])[0]
    },
    async stop() {
      const gone = once(child, 'exit')
      child.disconnect()
      await gone
    },
  }
}

/** The tool that people use for this today: mitmproxy in reverse mode, with an addon that injects a header. */
export async function startMitmproxy(upstreamPort: number): Promise<Relay> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-mitmproxy-'))
  const port = await freePort()
  await writeFile(join(folder, 'ca.pem'), LOCALHOST_CERT)
  await writeFile(
    join(folder, 'inject.py'),
    'def request(flow):\n    flow.request.headers["authorization"] = "Bearer a secret of the bench"\n',
  )
  const options: Readonly<Record<string, string>> = {
    '--mode': `reverse:https://localhost:${upstreamPort}`,
    '--listen-host': '127.0.0.1',
    '--listen-port': String(port),
    '--scripts': join(folder, 'inject.py'),
  }
  // Like the others it keeps no flows.
  const set = {
    confdir: folder,
    ssl_verify_upstream_trusted_ca: join(folder, 'ca.pem'),
    flow_detail: 0,
  }
  const args = [
    '--quiet',
    ...Object.entries(options).flat(),
    ...Object.entries(set).flatMap(([name, value]) => ['--set', `${name}=${value}`]),
  ]
  const [command, ...words] = [...pinned(0), 'mitmdump', ...args]
  const child = spawn(command!, words, { stdio: ['ignore', 'inherit', 'inherit'] })
  await listening(child, port)
  return {
    port,
    spent: async () => spentBy(child.pid!),
    async stop() {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Waits until a program accepts connections. */
async function listening(child: ChildProcess, port: number): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    await sleep(100)
  }
  throw new Error('it does not listen')
}

/** nginx with one worker, unbuffered, with keep-alive to a verified upstream, as in production. */
export async function startNginx(upstreamPort: number): Promise<Relay> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-nginx-'))
  const port = await freePort()
  await mkdir(join(folder, 'temp'))
  await writeFile(join(folder, 'ca.pem'), LOCALHOST_CERT)
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
user root;
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path ${folder}/temp; proxy_temp_path ${folder}/temp;
  fastcgi_temp_path ${folder}/temp; uwsgi_temp_path ${folder}/temp; scgi_temp_path ${folder}/temp;
  keepalive_requests 1000000000;
  upstream far { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass https://far; proxy_http_version 1.1; proxy_set_header connection "";
      proxy_set_header host localhost; proxy_buffering off; proxy_request_buffering off;
      proxy_ssl_verify on; proxy_ssl_trusted_certificate ${folder}/ca.pem;
      proxy_ssl_name localhost; proxy_ssl_session_reuse on;
    }
  }
}
`,
  )
  const [command, ...words] = [...pinned(0), 'nginx', '-p', folder, '-c', `${folder}/nginx.conf`]
  const child = spawn(command!, words, { stdio: ['ignore', 'inherit', 'inherit'] })
  const worker = await workerOf(child)
  return {
    port,
    spent: async () => spentBy(worker),
    async stop() {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The pid of the worker, once the master has started it. */
async function workerOf(master: ChildProcess): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    await sleep(50)
    if (master.exitCode !== null) throw new Error('nginx did not start')
    const children = readFileSync(`/proc/${master.pid}/task/${master.pid}/children`, 'utf8')
    const [first] = children.trim().split(' ')
    if (first) return Number(first)
  }
  throw new Error('nginx started no worker')
}
