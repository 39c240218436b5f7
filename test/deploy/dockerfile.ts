/**
 * Runs the steps of the Dockerfile without a container engine: each stage is a folder, COPY copies, RUN runs in it. It
 * knows the instructions that our file uses and refuses all others.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export type Instruction = { readonly name: string; readonly words: string }

export type Stage = {
  readonly name: string
  readonly base: string
  readonly instructions: readonly Instruction[]
}

/** The stages of a Dockerfile, in order. */
export function readDockerfile(path: string): Stage[] {
  const text = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
  const stages: (Omit<Stage, 'instructions'> & { instructions: Instruction[] })[] = []
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const [, name = '', words = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (name === 'FROM') {
      const [, base = '', stage = ''] = /^(\S+) AS (\S+)$/.exec(words) ?? []
      stages.push({ name: stage, base, instructions: [] })
    } else if (name === '') throw new Error(`not an instruction: ${line}`)
    else stages.at(-1)?.instructions.push({ name, words })
  }
  return stages
}

export type StagePlan = {
  readonly root: string
  /** The build context. */
  readonly context: string
  /** Folders of the earlier stages. */
  readonly stages: ReadonlyMap<string, string>
  readonly environment: Readonly<Record<string, string>>
  /** Runs nothing that changes users or permissions: that needs a container. */
  readonly skips: RegExp
}

/** What the last stage says about its process. */
export type ImageConfig = {
  readonly workdir: string
  readonly user: string | undefined
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
  readonly stopSignal: string | undefined
  readonly environment: Readonly<Record<string, string>>
}

export function runStage({ instructions }: Stage, plan: StagePlan): ImageConfig {
  const { root, context, stages, environment, skips } = plan
  const config = {
    workdir: '/',
    user: undefined as string | undefined,
    entrypoint: [] as string[],
    command: [] as string[],
    healthcheck: [] as string[],
    stopSignal: undefined as string | undefined,
    environment: {} as Record<string, string>,
  }
  const inside = (path: string) => (path.startsWith('/') ? path : join(config.workdir, path))
  for (const { name, words } of instructions) {
    if (name === 'WORKDIR') {
      config.workdir = words
      mkdirSync(join(root, words), { recursive: true })
    } else if (name === 'ENV') {
      const [, key = '', value = ''] = /^(\w+)=(\S+)$/.exec(words) ?? []
      config.environment[key] = value
    } else if (name === 'COPY') {
      const [, stage, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(words) ?? []
      const parts = paths.split(' ')
      const target = parts.pop()!
      const from = stage === undefined ? context : stages.get(stage)!
      for (const source of parts.flatMap((part) => matching(from, part))) {
        const to = inside(target)
        const isInto = target.endsWith('/')
        cpSync(join(from, source), join(root, isInto ? join(to, basename(source)) : to), {
          recursive: true,
          verbatimSymlinks: true,
        })
      }
    } else if (name === 'RUN') {
      if (skips.test(words)) continue
      const cwd = join(root, config.workdir)
      execFileSync('/bin/sh', ['-ec', words], { cwd, env: { ...environment }, stdio: 'pipe' })
    } else if (name === 'USER') config.user = words
    else if (name === 'ENTRYPOINT') config.entrypoint = JSON.parse(words) as string[]
    else if (name === 'CMD') config.command = JSON.parse(words) as string[]
    else if (name === 'STOPSIGNAL') config.stopSignal = words
    else if (name === 'HEALTHCHECK') {
      config.healthcheck = JSON.parse(words.slice(words.indexOf('CMD ') + 4)) as string[]
    } else if (!['ARG', 'EXPOSE', 'LABEL'].includes(name))
      throw new Error(`unknown instruction ${name}`)
  }
  return config
}

/** A star stands for a file name. */
function matching(folder: string, path: string): string[] {
  if (!path.includes('*')) return [path.replace(/^\.\//, '')]
  const [parent = '.', pattern = ''] = [path.slice(0, path.lastIndexOf('/')), basename(path)]
  const [before = '', after = ''] = pattern.split('*')
  return readdirSync(join(folder, parent))
    .filter((name) => name.startsWith(before) && name.endsWith(after))
    .map((name) => join(parent, name))
}
