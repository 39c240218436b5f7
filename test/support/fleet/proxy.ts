/**
 * nginx and HAProxy in front of a fleet, with the files of deploy/proxies. Only names, ports and paths differ, and for
 * flows the time limits of connections and of health checks.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from '../service/certificates.js'
import { program } from '../service/program.js'
import { until } from '../service/watch.js'

export const PROXIES = ['nginx', 'haproxy'] as const
export type ProxyName = (typeof PROXIES)[number]

const FILES = new URL('../../../../deploy/proxies/', import.meta.url).pathname
const FILE: Readonly<Record<ProxyName, string>> = {
  nginx: 'nginx-several.conf',
  haproxy: 'haproxy-tcp-several.cfg',
}
/** In this order the processes take the addresses of the file. */
const ADDRESSES = ['10.0.0.11', '10.0.0.12', '10.0.0.21', '10.0.0.22'].map((ip) => `${ip}:8443`)

export interface Proxy {
  stop(): Promise<void>
}

/**
 * The limits in the files take a process that stands still out within seconds. A burst of TLS handshakes takes longer than
 * that while many tests share a few processors.
 */
const SHORT_LIMIT = /(proxy_connect_timeout|timeout connect|timeout check) \d+s/g

/**
 * @param isPatient raises these limits.
 * @param ports for nginx the ports of two processes of the plane `auth` and two of `control`, for
 *   HAProxy two of all planes.
 */
export async function startProxy(
  name: ProxyName,
  port: number,
  ports: readonly number[],
  certificate: Certificate,
  isPatient = false,
): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-fleet-'))
  // The workers of nginx run as another account.
  chmodSync(folder, 0o755)
  const ca = join(folder, 'ca.pem')
  writeFileSync(ca, certificate.pem)
  let text = readFileSync(join(FILES, FILE[name]), 'utf8')
    .replaceAll(/\/etc\/(nginx|haproxy)\/svc-ca\.pem/g, ca)
    .replaceAll('/etc/nginx/id.example.com.pem', certificate.certPath)
    .replaceAll('/etc/nginx/id.example.com.key', certificate.keyPath)
    .replace('listen 443', `listen ${port}`)
    .replace('bind :443', `bind :${port}`)
    .replaceAll('*.id.example.com', '*.localhost')
    .replaceAll('id.example.com', 'localhost')
  if (isPatient) text = text.replaceAll(SHORT_LIMIT, '$1 30s')
  for (const [index, own] of ports.entries()) {
    text = text.replaceAll(ADDRESSES[index]!, `127.0.0.1:${own}`)
  }
  const file = join(folder, FILE[name])
  writeFileSync(file, text)
  const words =
    name === 'nginx'
      ? ['-p', folder, '-e', 'stderr', '-c', file, '-g', 'daemon off; pid nginx.pid;']
      : ['-db', '-f', file]
  const child = spawn(program(name)!, words, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: folder },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (said += part))
  }
  const exited = once(child, 'exit')
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await exited
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until(name, () => {
      if (child.exitCode !== null) throw new Error(`${name} ended:\n${said}`)
      return accepts(port)
    })
  } catch (error) {
    await stop()
    throw error
  }
  return { stop }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
