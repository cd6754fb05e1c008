CREATE TABLE employees (emp_no integer PRIMARY KEY, birth_date date, first_name text, last_name text, gender text, hire_date date);
CREATE TABLE departments (dept_no text PRIMARY KEY, dept_name text);
CREATE TABLE dept_manager (emp_no integer REFERENCES employees, dept_no text REFERENCES departments, from_date date, to_date date, PRIMARY KEY (emp_no, dept_no));
CREATE TABLE dept_emp (emp_no integer REFERENCES employees, dept_no text REFERENCES departments, from_date date, to_date date, PRIMARY KEY (emp_no, dept_no));
CREATE TABLE titles (emp_no integer REFERENCES employees, title text, from_date date, to_date date, PRIMARY KEY (emp_no, title, from_date));
CREATE TABLE salaries (emp_no integer REFERENCES employees, salary integer, from_date date, to_date date, PRIMARY KEY (emp_no, from_date));
