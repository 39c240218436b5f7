/**
 * The folder of one run, with the certificates that its child trusts. It contains no key. The next run
 * removes the folder of a killed one.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Read by wget before the file of the user. */
const SYSTEM_WGETRC = '/etc/wgetrc'
const NAME = /^(\d+)-[A-Za-z0-9_-]+$/

interface RunFolder {
  readonly bundlePath: string
  /** The system file of wget with the certificates. */
  readonly wgetrcPath: string
  /** A folder with settings of PHP. */
  readonly phpFolder: string
  remove(): void
}

type FolderNeeds = {
  /** Folder of this user for all runs. */
  readonly parent: string
  readonly pid: number
  readonly tag: string
  /** True if a process with that id exists. */
  readonly isAlive: (pid: number) => boolean
}

export function createRunFolder(
  { parent, pid, tag, isAlive }: FolderNeeds,
  bundlePem: string,
  systemWgetrc = SYSTEM_WGETRC,
): RunFolder {
  mkdirSync(parent, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(parent)) {
    const owner = Number(NAME.exec(name)?.[1] ?? pid)
    if (owner !== pid && !isAlive(owner))
      rmSync(join(parent, name), { recursive: true, force: true })
  }
  const folder = join(parent, `${pid}-${tag}`)
  mkdirSync(folder, { mode: 0o700 })
  const bundlePath = join(folder, 'certificates.pem')
  const write = (path: string, text: string) =>
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  write(bundlePath, bundlePem)
  const wgetrcPath = join(folder, 'wgetrc')
  const system = existsSync(systemWgetrc) ? readFileSync(systemWgetrc, 'utf8') : ''
  write(wgetrcPath, `${system}\nca_certificate = ${bundlePath}\n`)
  const phpFolder = join(folder, 'php')
  mkdirSync(phpFolder, { mode: 0o700 })
  write(
    join(phpFolder, 'svc.ini'),
    `curl.cainfo = "${bundlePath}"\nopenssl.cafile = "${bundlePath}"\n`,
  )
  const remove = () => rmSync(folder, { recursive: true, force: true })
  return { bundlePath, wgetrcPath, phpFolder, remove }
}
