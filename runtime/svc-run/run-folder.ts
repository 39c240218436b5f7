/**
 * The folder of one run, with the certificates that its child trusts. It contains no key. The next run
 * removes the folder of a killed one.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NAME = /^(\d+)-[A-Za-z0-9_-]+$/

export interface RunFolder {
  readonly bundlePath: string
  remove(): void
}

export type FolderNeeds = {
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
  writeFileSync(bundlePath, bundlePem, { mode: 0o600, flag: 'wx' })
  return { bundlePath, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
