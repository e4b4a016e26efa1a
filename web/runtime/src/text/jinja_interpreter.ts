// Jinja evaluation with bounds and with the origin of every character: @huggingface/jinja's interpreter,
// watched at its two recursive methods. For chat_template.ts. It adds no syntax and changes no result.

import { type Environment, Interpreter } from '@huggingface/jinja';
import type { WorkBudget } from './jinja_budget.js';
import type { Inputs, Origins } from './jinja_origin.js';
import { elementsOf, filterName, isString, type Statement, type Value } from './jinja_values.js';

interface Frame extends Inputs {
  /** UTF-16 units of the text that the statements so far have produced. */
  textLength: number;
}

/** The library's method for a list of statements; private in its types. */
interface BlockEvaluator {
  evaluateBlock?: (statements: Statement[], environment: Environment) => Value;
}

export class WatchedInterpreter extends Interpreter {
  private readonly budget: WorkBudget;
  private readonly origins: Origins;
  private readonly frames: Frame[] = [];

  constructor(environment: Environment, budget: WorkBudget, origins: Origins) {
    super(environment);
    this.budget = budget;
    this.origins = origins;
    this.watchBlocks();
  }

  override evaluate(statement: Statement | undefined, environment: Environment): Value {
    if (statement === undefined) return super.evaluate(statement, environment);
    const parent = this.frames.at(-1);
    const frame = newFrame(statement);
    this.frames.push(frame);
    this.budget.enter();
    let value: Value;
    try {
      value = super.evaluate(statement, environment);
    } finally {
      this.budget.leave();
      this.frames.pop();
    }
    this.budget.checkResult(value);
    this.origins.note(value, frame);
    if (parent !== undefined) this.addInput(parent, value);
    return value;
  }

  private addInput(frame: Frame, value: Value): void {
    frame.values.push(value);
    if (frame.node.type === 'Block') {
      this.addText(frame, value);
      return;
    }
    this.budget.checkInputs(frame.node, frame.values);
    if (frame.node.type === 'FilterStatement') this.checkFilterStatement(frame);
    if (frame.node.type !== 'CallExpression') return;
    // The function comes last, after its arguments.
    const method = this.origins.methodOf(value);
    if (method !== undefined) {
      this.budget.checkCall(method.name, method.owner, frame.values.slice(0, -1));
    }
  }

  private checkFilterStatement({ node, blocks, values }: Frame): void {
    const [text] = blocks;
    if (text !== undefined) this.budget.checkCall(filterName(node), text, values);
  }

  private addText(frame: Frame, value: Value): void {
    const container = elementsOf(value) !== undefined;
    if (!container && !isString(value)) return; // a number or nothing: short
    frame.textLength += container ? this.budget.printed(value) : (value.value as string).length;
    this.budget.checkLength(frame.textLength);
  }

  /** Statement lists go through a method of their own; without it loops would lose their ranges. */
  private watchBlocks(): void {
    const evaluator = this as unknown as BlockEvaluator;
    const original = evaluator.evaluateBlock;
    if (original === undefined) return; // origins then count every loop's text as foreign
    evaluator.evaluateBlock = (statements, environment) => {
      const parent = this.frames.at(-1);
      const frame = newFrame({ type: 'Block' } as Statement);
      this.frames.push(frame);
      this.budget.enter();
      let value: Value;
      try {
        value = original.call(this, statements, environment);
      } finally {
        this.budget.leave();
        this.frames.pop();
      }
      this.budget.checkResult(value);
      this.origins.noteConcatenation(value, frame.values);
      if (parent !== undefined) {
        parent.blocks.push(value);
        this.addText(parent, value);
        if (parent.node.type === 'FilterStatement') this.checkFilterStatement(parent);
      }
      return value;
    };
  }
}

function newFrame(node: Statement): Frame {
  return { node: node as unknown as Inputs['node'], values: [], blocks: [], textLength: 0 };
}
