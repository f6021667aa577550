import ts from 'typescript';
import type { Sources } from './folders.js';

/** The exported functions without a docstring, as `path name`. Of overloads the first one's is that of all. */
export function findUndocumented(sources: Sources): string[] {
  return Object.entries(sources).flatMap(([path, text]) => {
    const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    const functions = file.statements.filter(ts.isFunctionDeclaration);
    const first = new Map(functions.map((node) => [node.name?.text, node] as const).reverse());
    return [...first]
      .filter(([, node]) => node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
      .filter(([, node]) => ts.getJSDocCommentsAndTags(node).length === 0)
      .map(([name]) => `${path} ${name}`);
  });
}
